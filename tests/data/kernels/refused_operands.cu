// Asks the launch of a kernel of bsr_gemm (-DKERNEL="its file") for operands that it must refuse.
// Nothing reads the addresses: the refusal comes before anything of CUDA is called.
//
//     program A|B|C     this operand is not at a multiple of 16 bytes
//     program NUMBER    the second block-row has so many blocks, the first has six
#define main main_of_the_kernel
#include KERNEL
#undef main

#include <cctype>
#include <cstdlib>

int main(int, char** arguments) {
  const char* const what = arguments[1];
  const int offsets[] = {0, 6, 6 + (std::isdigit(*what) != 0 ? std::atoi(what) : 6)};
  sparsek::Operands p{};
  p.m = 256;
  p.host_row_offsets = offsets;
  p.values = reinterpret_cast<const sparsek::Element*>(*what == 'A' ? 18 : 16);
  p.b = reinterpret_cast<const sparsek::Element*>(*what == 'B' ? 18 : 16);
  p.c = reinterpret_cast<float*>(*what == 'C' ? 20 : 16);
  launch(p);
}
