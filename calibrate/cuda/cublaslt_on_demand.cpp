// The calls of cuBLASLt that are used, as its header declares them. Its half a gigabyte is loaded
// by the first of them: programs that ask no GPU start without it.
#include <cublasLt.h>
#include <dlfcn.h>

#include <cstdint>
#include <string>

#include "engine/check.hpp"

namespace {

using stepcast::InputError;

void* load() {
  const std::string name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
  // As installed, or of the toolkit that this was built with.
  for (const std::string& file : {name, std::string(STEPCAST_CUDA_LIBRARIES) + "/" + name})
    if (void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  throw InputError(name, dlerror(), "name the folder of CUDA's libraries in LD_LIBRARY_PATH");
}

/// The library's function of a declared one's name.
template <class Function>
Function* find(Function*, const char* name) {
  static void* const library = load();
  if (void* symbol = dlsym(library, name)) return reinterpret_cast<Function*>(symbol);
  throw InputError("cuBLASLt", std::string("has no ") + name, "take the CUDA it was built with");
}

}  // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  static const auto call = find(&cublasLtCreate, "cublasLtCreate");
  return call(handle);
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  static const auto call = find(&cublasLtDestroy, "cublasLtDestroy");
  return call(handle);
}

const char* cublasLtGetStatusString(cublasStatus_t status) {
  static const auto call = find(&cublasLtGetStatusString, "cublasLtGetStatusString");
  return call(status);
}

std::size_t cublasLtGetVersion() {
  static const auto call = find(&cublasLtGetVersion, "cublasLtGetVersion");
  return call();
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t of_a,
                              const void* b, cublasLtMatrixLayout_t of_b, const void* beta,
                              const void* c, cublasLtMatrixLayout_t of_c, void* d,
                              cublasLtMatrixLayout_t of_d, const cublasLtMatmulAlgo_t* algorithm,
                              void* workspace, std::size_t bytes, cudaStream_t stream) {
  static const auto call = find(&cublasLtMatmul, "cublasLtMatmul");
  return call(handle, product, alpha, a, of_a, b, of_b, beta, c, of_c, d, of_d, algorithm,
              workspace, bytes, stream);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t of_a,
                                              cublasLtMatrixLayout_t of_b,
                                              cublasLtMatrixLayout_t of_c,
                                              cublasLtMatrixLayout_t of_d,
                                              cublasLtMatmulPreference_t preference, int asked,
                                              cublasLtMatmulHeuristicResult_t* results, int* got) {
  static const auto call = find(&cublasLtMatmulAlgoGetHeuristic, "cublasLtMatmulAlgoGetHeuristic");
  return call(handle, product, of_a, of_b, of_c, of_d, preference, asked, results, got);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* product, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  static const auto call = find(&cublasLtMatmulDescCreate, "cublasLtMatmulDescCreate");
  return call(product, compute, scale);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
  static const auto call = find(&cublasLtMatmulDescDestroy, "cublasLtMatmulDescDestroy");
  return call(product);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  static const auto call = find(&cublasLtMatmulDescSetAttribute, "cublasLtMatmulDescSetAttribute");
  return call(product, attribute, value, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  static const auto call = find(&cublasLtMatmulPreferenceCreate, "cublasLtMatmulPreferenceCreate");
  return call(preference);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  static const auto call =
      find(&cublasLtMatmulPreferenceDestroy, "cublasLtMatmulPreferenceDestroy");
  return call(preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, std::size_t bytes) {
  static const auto call =
      find(&cublasLtMatmulPreferenceSetAttribute, "cublasLtMatmulPreferenceSetAttribute");
  return call(preference, attribute, value, bytes);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t leading) {
  static const auto call = find(&cublasLtMatrixLayoutCreate, "cublasLtMatrixLayoutCreate");
  return call(layout, type, rows, columns, leading);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  static const auto call = find(&cublasLtMatrixLayoutDestroy, "cublasLtMatrixLayoutDestroy");
  return call(layout);
}
