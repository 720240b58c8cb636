// One variant as a shared object with a C interface, so that a program can launch it beside others
// in one process. The variant's file is included with two names changed: its main becomes
// variant_main, and the harness's run, which main calls, becomes hand_over below.
//
//   nvcc -DVARIANT='"/path/to/kernels/FAMILY/VARIANT.cu"' -shared -Xcompiler -fPIC
//        --default-stream per-thread ...
//
// A variant launches on the default stream. Compiled per thread, that is one that can be captured
// into a graph.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "../../kernels/common/dependent_launch.cuh"
#include "../../kernels/common/harness.cuh"

namespace {

// Inputs and output in device memory, of whatever family.
class Inputs {
 public:
  virtual ~Inputs() = default;
  virtual const void* operands() const = 0;
  virtual std::uint64_t flop() const = 0;
  virtual std::uint64_t bytes() const = 0;
  virtual void poison_output() = 0;
  virtual sparsek::CheckOutcome check() = 0;
};

// A variant, of whatever family.
class Bound {
 public:
  virtual ~Bound() = default;
  virtual const char* name() const = 0;
  virtual void require(int argc, char** argv) const = 0;
  virtual std::unique_ptr<Inputs> create(int argc, char** argv) const = 0;
  virtual std::size_t operand_bytes() const = 0;
  virtual void launch(const void* operands) const = 0;
};

template <typename Problem>
class InputsOf : public Inputs {
 public:
  using Shape = typename Problem::Shape;

  InputsOf(const Shape& shape, std::uint64_t seed, std::uint64_t value_seed)
      : problem_(shape, seed, value_seed), operands_(problem_.operands()) {}
  const void* operands() const override { return &operands_; }
  std::uint64_t flop() const override { return problem_.flop(); }
  std::uint64_t bytes() const override { return problem_.bytes(); }
  void poison_output() override { problem_.poison_output(); }
  sparsek::CheckOutcome check() override { return problem_.compare().outcome; }

 private:
  Problem problem_;
  typename Problem::Operands operands_;
};

// Variant: what the family's harness takes. require_sizes(variant, shape) says how it refuses.
template <typename Problem, typename Variant>
class BoundTo : public Bound {
 public:
  using Shape = typename Problem::Shape;
  using Operands = typename Problem::Operands;
  static_assert(std::is_trivially_copyable_v<Operands>, "a caller copies them byte by byte");

  explicit BoundTo(const Variant& variant) : variant_(variant) {
    if (variant_.prepare != nullptr) variant_.prepare();
  }
  const char* name() const override { return variant_.name; }
  void require(int argc, char** argv) const override {
    Shape shape;
    sparsek::parse_options(argc, argv, shape.options());
    require_sizes(variant_, shape);
  }
  std::unique_ptr<Inputs> create(int argc, char** argv) const override {
    Shape shape;
    const sparsek::Options options = sparsek::parse_options(argc, argv, shape.options());
    require_sizes(variant_, shape);
    return std::make_unique<InputsOf<Problem>>(shape, static_cast<std::uint64_t>(options.seed),
                                               static_cast<std::uint64_t>(options.value_seed));
  }
  std::size_t operand_bytes() const override { return sizeof(Operands); }
  void launch(const void* operands) const override {
    variant_.launch(*static_cast<const Operands*>(operands));
    SPARSEK_CUDA_CHECK(cudaGetLastError());
  }

 private:
  Variant variant_;
};

std::unique_ptr<Bound> bound;

}  // namespace

namespace sparsek {

template <typename Problem>
void require_sizes(const Variant<Problem>& variant, const typename Problem::Shape& shape) {
  shape.require();
  if (variant.require != nullptr) variant.require(shape);
}

template <typename Problem>
int hand_over(int, char**, const Variant<Problem>& variant) {
  bound = std::make_unique<BoundTo<Problem, Variant<Problem>>>(variant);
  return kExitOk;
}

}  // namespace sparsek

#define main variant_main
#define run hand_over
#include VARIANT
#undef main
#undef run

namespace {

const Bound& variant() {
  if (bound == nullptr) variant_main(0, nullptr);
  return *bound;
}

Inputs& inputs(void* handle) { return *static_cast<Inputs*>(handle); }

}  // namespace

// Arguments are the executable's own: sizes and --seed by their flags. A refusal or a CUDA error
// ends the process with the executable's exit status. Inputs last as long as the process.
extern "C" {

const char* variant_name() { return variant().name(); }
void variant_require(int argc, char** argv) { variant().require(argc, argv); }
// Copies of `operands` will do, also of those from another variant of the family.
void variant_launch(const void* operands) { variant().launch(operands); }

// Whether the launches to come may be dependent ones, and whether any launch has been made so that it
// could be (kernels/common/dependent_launch.cuh).
void variant_allow_dependent(int allowed) { sparsek::dependent_launches.allowed = allowed != 0; }
int variant_can_be_dependent() { return sparsek::dependent_launches.used ? 1 : 0; }

void* inputs_create(int argc, char** argv) { return variant().create(argc, argv).release(); }
const void* inputs_operands(void* handle) { return inputs(handle).operands(); }
std::size_t inputs_operand_bytes() { return variant().operand_bytes(); }
std::uint64_t inputs_flop(void* handle) { return inputs(handle).flop(); }
std::uint64_t inputs_bytes(void* handle) { return inputs(handle).bytes(); }
void inputs_poison_output(void* handle) { inputs(handle).poison_output(); }
void inputs_check(void* handle, sparsek::CheckOutcome* outcome) {
  *outcome = inputs(handle).check();
}

}  // extern "C"
