#include "cuda/products.h"

#include <cublasLt.h>
#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <map>

#include "core/error.h"
#include "cuda/check.h"

namespace longhand::cuda {
namespace {

using Epilogue = Product::Epilogue;

/// The cuBLASLt functions, loaded when the first CUDA backend is created. The library is half a
/// gigabyte large, so a program that computes only on the CPU does not load it.
struct Library {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtMatmulDescCreate) desc_create;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set;
  decltype(&cublasLtMatrixLayoutCreate) layout_create;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy;
  decltype(&cublasLtMatrixLayoutSetAttribute) layout_set;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtGetStatusString) status_string;

  static const Library& the_one() {
    static const Library library;
    return library;
  }

 private:
  Library() {
    constexpr const char* name = "libcublasLt.so.13";
    void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
      handle = dlopen(LONGHAND_CUDA_LIBRARIES "/libcublasLt.so.13", RTLD_NOW | RTLD_LOCAL);
    LONGHAND_CHECK(handle, "cuda: ", name, " of the CUDA 13 toolkit is not found (", dlerror(),
                   ")");
    const auto find = [&]<class Function>(Function& function, const char* symbol) {
      function = reinterpret_cast<Function>(dlsym(handle, symbol));
      LONGHAND_CHECK(function, "cuda: ", name, " has no function ", symbol);
    };
    find(create, "cublasLtCreate");
    find(destroy, "cublasLtDestroy");
    find(desc_create, "cublasLtMatmulDescCreate");
    find(desc_destroy, "cublasLtMatmulDescDestroy");
    find(desc_set, "cublasLtMatmulDescSetAttribute");
    find(layout_create, "cublasLtMatrixLayoutCreate");
    find(layout_destroy, "cublasLtMatrixLayoutDestroy");
    find(layout_set, "cublasLtMatrixLayoutSetAttribute");
    find(preference_create, "cublasLtMatmulPreferenceCreate");
    find(preference_destroy, "cublasLtMatmulPreferenceDestroy");
    find(preference_set, "cublasLtMatmulPreferenceSetAttribute");
    find(heuristic, "cublasLtMatmulAlgoGetHeuristic");
    find(matmul, "cublasLtMatmul");
    find(status_string, "cublasLtGetStatusString");
  }
};

void require(cublasStatus_t status, const char* what) {
  LONGHAND_CHECK(status == CUBLAS_STATUS_SUCCESS, "cuda: cuBLASLt: ", what, ": ",
                 Library::the_one().status_string(status));
}

cudaDataType_t as_data_type(DType type) { return type == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F; }

cublasLtEpilogue_t as_epilogue(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::none:
      return CUBLASLT_EPILOGUE_DEFAULT;
    case Epilogue::bias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::relu:
      return CUBLASLT_EPILOGUE_RELU;
    case Epilogue::relu_bias:
      return CUBLASLT_EPILOGUE_RELU_BIAS;
    case Epilogue::gelu:
      return CUBLASLT_EPILOGUE_GELU;
    case Epilogue::gelu_bias:
      return CUBLASLT_EPILOGUE_GELU_BIAS;
    case Epilogue::gelu_save:
      return CUBLASLT_EPILOGUE_GELU_AUX;
    case Epilogue::gelu_save_bias:
      return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    default:
      return CUBLASLT_EPILOGUE_DGELU;
  }
}

/// The largest power of two, up to 16, that divides all addresses in x.
int alignment(const ProductOperands& x) {
  std::uintptr_t bits = 16;
  for (const void* address :
       {x.a, x.b, x.c, static_cast<const void*>(x.d), x.bias, static_cast<const void*>(x.aux)}) {
    bits |= reinterpret_cast<std::uintptr_t>(address);
  }
  return 1 << std::countr_zero(bits);
}

/// A cuBLASLt layout that describes `count` matrices [rows, columns], stored one after another. We
/// store matrices by rows, but cuBLASLt expects them by columns. The layout therefore describes the
/// same memory as transposed matrices [columns, rows].
class Layout {
 public:
  Layout(DType type, std::int64_t rows, std::int64_t columns, std::int64_t count) {
    const Library& lt = Library::the_one();
    require(lt.layout_create(&layout_, as_data_type(type), static_cast<std::uint64_t>(columns),
                             static_cast<std::uint64_t>(rows), columns),
            "a layout");
    const auto batch = static_cast<std::int32_t>(count);
    const std::int64_t stride = rows * columns;
    require(lt.layout_set(layout_, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch),
            "a batch");
    require(
        lt.layout_set(layout_, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
        "a stride");
  }
  ~Layout() { Library::the_one().layout_destroy(layout_); }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;

  cublasLtMatrixLayout_t get() const { return layout_; }

 private:
  cublasLtMatrixLayout_t layout_ = nullptr;
};

/// A product that is ready to run: its descriptors, and the algorithm that cuBLASLt's heuristics
/// rank first.
///
/// We store matrices by rows. cuBLASLt reads the same memory by columns, as the transposed matrix.
/// The call therefore computes
///   d^T = op(b)^T op(a)^T,
/// and its first factor is our b.
class Prepared {
 public:
  Prepared(cublasLtHandle_t handle, const Product& p, const ProductOperands& x,
           std::size_t workspace)
      : a_(p.operands, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.batch),
        b_(p.operands, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, p.batch),
        d_(p.result, p.m, p.n, p.batch) {
    const Library& lt = Library::the_one();
    const auto compute = p.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    require(lt.desc_create(&desc_, compute, CUDA_R_32F), "a description");
    set(CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, as_epilogue(p.epilogue));
    if (has_bias(p)) {
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<std::int32_t>(as_data_type(p.result)));
    }
    if (has_aux(p)) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.n);
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, p.m * p.n);
    }
    point(p, x);  // sets the addresses of bias and aux, which the heuristics also use

    cublasLtMatmulPreference_t preference = nullptr;
    require(lt.preference_create(&preference), "a preference");
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      require(lt.preference_set(preference, attribute, &value, sizeof value), "a preference");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace});
    // cuBLASLt may split the sum over k into parts. Only the schemes that combine the sums of the
    // parts through the workspace are allowed. A third scheme combines these sums in the output
    // matrix, and its order of addition varies.
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE |
                                      CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE));
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      prefer(attribute, static_cast<std::uint32_t>(alignment(x)));
    }
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    const cublasStatus_t status = lt.heuristic(handle, desc_, b_.get(), a_.get(), d_.get(),
                                               d_.get(), preference, 1, &best, &found);
    lt.preference_destroy(preference);
    possible_ = status == CUBLAS_STATUS_SUCCESS && found > 0;
    algorithm_ = best.algo;
  }
  ~Prepared() { Library::the_one().desc_destroy(desc_); }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  bool possible() const { return possible_; }

  void run(cublasLtHandle_t handle, const Product& p, const ProductOperands& x, void* workspace,
           std::size_t workspace_size, cudaStream_t stream) {
    point(p, x);
    require(Library::the_one().matmul(handle, desc_, &x.alpha, x.b, b_.get(), x.a, a_.get(),
                                      &x.beta, x.c, d_.get(), x.d, d_.get(), &algorithm_, workspace,
                                      workspace_size, stream),
            "a product");
  }

 private:
  void point(const Product& p, const ProductOperands& x) {
    if (has_bias(p)) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, x.bias);
    if (has_aux(p)) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, x.aux);
  }
  static bool has_bias(const Product& p) {
    return p.epilogue == Epilogue::bias || p.epilogue == Epilogue::relu_bias ||
           p.epilogue == Epilogue::gelu_bias || p.epilogue == Epilogue::gelu_save_bias;
  }
  static bool has_aux(const Product& p) { return p.epilogue >= Epilogue::gelu_save; }

  template <class Value>
  void set(cublasLtMatmulDescAttributes_t attribute, const Value& value) {
    require(Library::the_one().desc_set(desc_, attribute, &value, sizeof value), "an attribute");
  }

  Layout a_, b_, d_;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
  bool possible_ = false;
};

}  // namespace

struct Products::State {
  // NVIDIA recommends 32 MiB for Hopper.
  static constexpr std::size_t workspace_size = std::size_t{32} << 20;

  Stream& stream;
  MemorySource& memory;
  cublasLtHandle_t handle = nullptr;
  void* workspace = nullptr;
  // The key consists of the product and the alignment of its operands in bytes.
  std::map<std::pair<Product, int>, Prepared> prepared;

  State(Stream& s, MemorySource& m) : stream(s), memory(m) {
    require(Library::the_one().create(&handle), "starting");
    workspace = memory.allocate(workspace_size);
    LONGHAND_CHECK(workspace, "cuda memory is used up: cannot allocate ", workspace_size,
                   " bytes of workspace for matrix products");
  }
  ~State() {
    prepared.clear();
    memory.release(workspace, workspace_size);
    Library::the_one().destroy(handle);
  }
};

Products::Products(Stream& stream, MemorySource& memory)
    : state_(std::make_unique<State>(stream, memory)) {}
Products::~Products() = default;

bool Products::run(const Product& product, const ProductOperands& operands) {
  use_device();
  State& s = *state_;
  const auto found = s.prepared.try_emplace({product, alignment(operands)}, s.handle, product,
                                            operands, State::workspace_size);
  Prepared& prepared = found.first->second;
  if (!prepared.possible()) return false;
  prepared.run(s.handle, product, operands, s.workspace, State::workspace_size,
               static_cast<cudaStream_t>(s.stream.handle()));
  return true;
}

}  // namespace longhand::cuda
