// Registers move between the warp groups of a thread block (PTX setmaxnreg).
#pragma once

namespace sparsek {

// Gives up all but Count registers a thread. Every warp of the warp group must come by.
template <int Count>
__device__ __forceinline__ void keep_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(Count));
}

// Waits for registers to be given up, and takes them until there are Count a thread.
template <int Count>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(Count));
}

}  // namespace sparsek
