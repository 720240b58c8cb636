"""Passes its check, and then hangs, crashes, fails, or launches nothing."""

import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import time

how = sys.argv[1]
if "--verify" in sys.argv:
    sys.exit(0)
if how == "nothing":
    sys.exit(0)

library = ctypes.CDLL(pathlib.Path(__file__).parent.resolve() / "libdouble.so")
assert library.double_vectors(1, 0, 0, 0) == 0
if how == "hang":
    # A grandchild in a session of its own must not survive either.
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    time.sleep(600)
elif how == "crash":
    os.kill(os.getpid(), signal.SIGSEGV)
elif how == "fail":
    sys.exit(7)
