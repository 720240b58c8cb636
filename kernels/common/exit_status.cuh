// The exit statuses of every kernel executable: one meaning each.
#pragma once

namespace sparsek {

enum ExitStatus : int {
  kExitOk = 0,
  kExitWrongNumbers = 1,    // the output differs from the reference by more than the tolerance
  kExitUsage = 2,           // bad argument, or a size or an alignment that the kernel refuses
  kExitNoDevice = 3,        // no GPU, or not one that this code was compiled for
  kExitCudaError = 4,       // a CUDA call or the kernel itself failed
  kExitResultUnwritten = 5  // the result file could not be written
};

}  // namespace sparsek
