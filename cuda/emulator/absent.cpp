#include "core/error.h"
#include "cuda/cuda_backend.h"

/// Operations whose kernels are not there yet: the tests of those that are need a whole class.
namespace longhand::cuda {

void CudaBackend::run(const ColumnSum&) { fail("cuda: ColumnSum is absent"); }
void CudaBackend::run(const Reduce&) { fail("cuda: Reduce is absent"); }
void CudaBackend::run(const Expand&) { fail("cuda: Expand is absent"); }
void CudaBackend::run(const LayerNorm&) { fail("cuda: LayerNorm is absent"); }
void CudaBackend::run(const LayerNormBackward&) { fail("cuda: LayerNormBackward is absent"); }
void CudaBackend::run(const RmsNorm&) { fail("cuda: RmsNorm is absent"); }
void CudaBackend::run(const RmsNormBackward&) { fail("cuda: RmsNormBackward is absent"); }
void CudaBackend::run(const Softmax&) { fail("cuda: Softmax is absent"); }
void CudaBackend::run(const SoftmaxBackward&) { fail("cuda: SoftmaxBackward is absent"); }
void CudaBackend::run(const CrossEntropy&) { fail("cuda: CrossEntropy is absent"); }
void CudaBackend::run(const CrossEntropyBackward&) { fail("cuda: CrossEntropyBackward is absent"); }
void CudaBackend::run(const BinaryCrossEntropy&) { fail("cuda: BinaryCrossEntropy is absent"); }
void CudaBackend::run(const BinaryCrossEntropyBackward&) {
  fail("cuda: BinaryCrossEntropyBackward is absent");
}
void CudaBackend::run(const Embedding&) { fail("cuda: Embedding is absent"); }
void CudaBackend::run(const EmbeddingBackward&) { fail("cuda: EmbeddingBackward is absent"); }
void CudaBackend::run(const Gather&) { fail("cuda: Gather is absent"); }
void CudaBackend::run(const GatherBackward&) { fail("cuda: GatherBackward is absent"); }
void CudaBackend::run(const Argmax&) { fail("cuda: Argmax is absent"); }
void CudaBackend::run(const Rope&) { fail("cuda: Rope is absent"); }
void CudaBackend::run(const GlobalNorm&) { fail("cuda: GlobalNorm is absent"); }
void CudaBackend::run(const Adam&) { fail("cuda: Adam is absent"); }
void CudaBackend::run(const Triangle&) { fail("cuda: Triangle is absent"); }
void CudaBackend::run(const SolveTriangular&) { fail("cuda: SolveTriangular is absent"); }
void CudaBackend::run(const SwapAxes&) { fail("cuda: SwapAxes is absent"); }
void CudaBackend::run(const Append&) { fail("cuda: Append is absent"); }

}  // namespace longhand::cuda
