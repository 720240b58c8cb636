"""Holds a context on the GPU for a minute, and launches nothing: `context.py FILE` makes FILE when it has it."""

import ctypes
import sys
import time

cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
for status in (cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)):
    if status:
        sys.exit(f"the driver says {status}")
open(sys.argv[1], "w").close()
time.sleep(60)
