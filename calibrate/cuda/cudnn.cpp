#include "calibrate/cuda/cudnn.hpp"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/device/device.hpp"
#include "engine/check.hpp"

#if __has_include(<cudnn.h>)
#include <cudnn.h>
#include <dlfcn.h>
#if CUDNN_VERSION >= 91300  // the single node of attention
#define STEPCAST_CUDNN_ATTENTION
#endif
#endif

namespace stepcast::calibrate {

#ifdef STEPCAST_CUDNN_ATTENTION
namespace {

/// The calls that are used, from the library at run time.
struct Library {
  void* file = nullptr;
  decltype(&cudnnCreate) create = nullptr;
  decltype(&cudnnDestroy) destroy = nullptr;
  decltype(&cudnnSetStream) set_stream = nullptr;
  decltype(&cudnnGetErrorString) error_string = nullptr;
  decltype(&cudnnGetVersion) version = nullptr;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor = nullptr;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor = nullptr;
  decltype(&cudnnBackendSetAttribute) set_attribute = nullptr;
  decltype(&cudnnBackendGetAttribute) get_attribute = nullptr;
  decltype(&cudnnBackendFinalize) finalize = nullptr;
  decltype(&cudnnBackendExecute) execute = nullptr;

  Library();
  ~Library() {
    if (file != nullptr) dlclose(file);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  void check(cudnnStatus_t status, const char* what) const {
    if (status != CUDNN_STATUS_SUCCESS)
      throw Unsupported(fmt::format("cuDNN: {}: {}", what, error_string(status)));
  }

 private:
  template <class Function>
  void load(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(file, name));
    if (function == nullptr) throw Unsupported(std::string("this cuDNN lacks ") + name);
  }
};

Library::Library() {
  file = dlopen(("libcudnn.so." + std::to_string(CUDNN_MAJOR)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (file == nullptr) throw Unsupported(fmt::format("no cuDNN {} here", CUDNN_MAJOR));
  load(create, "cudnnCreate");
  load(destroy, "cudnnDestroy");
  load(set_stream, "cudnnSetStream");
  load(error_string, "cudnnGetErrorString");
  load(version, "cudnnGetVersion");
  load(create_descriptor, "cudnnBackendCreateDescriptor");
  load(destroy_descriptor, "cudnnBackendDestroyDescriptor");
  load(set_attribute, "cudnnBackendSetAttribute");
  load(get_attribute, "cudnnBackendGetAttribute");
  load(finalize, "cudnnBackendFinalize");
  load(execute, "cudnnBackendExecute");
}

class Handle {
 public:
  explicit Handle(const Library& library) : library_(library) {
    library_.check(library_.create(&handle_), "cudnnCreate");
  }
  ~Handle() { library_.destroy(handle_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  cudnnHandle_t get() const { return handle_; }

 private:
  const Library& library_;
  cudnnHandle_t handle_ = nullptr;
};

/// One object of the graph API.
class Descriptor {
 public:
  Descriptor(const Library& library, cudnnBackendDescriptorType_t type) : library_(&library) {
    library_->check(library_->create_descriptor(type, &descriptor_), "create a descriptor");
  }
  Descriptor(Descriptor&& other) noexcept
      : library_(other.library_), descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (descriptor_ != nullptr) library_->destroy_descriptor(descriptor_);
  }

  cudnnBackendDescriptor_t get() const { return descriptor_; }
  template <class Value>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const Value* values,
           std::int64_t count = 1) {
    library_->check(library_->set_attribute(descriptor_, name, type, count, values),
                    "set an attribute");
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& other) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, &other.descriptor_);
  }
  void finalize(const char* what) { library_->check(library_->finalize(descriptor_), what); }
  bool finalized() { return library_->finalize(descriptor_) == CUDNN_STATUS_SUCCESS; }

 private:
  const Library* library_;
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

using Dimensions = std::array<std::int64_t, 4>;  // batch, heads, sequence, head_dim

// Ids of the tensors in the order of CudnnAttention::launch; the scale follows them.
enum : std::int64_t { q_id = 1, k_id, v_id, o_id, lse_id, do_id, dq_id, dk_id, dv_id, scale_id };

struct Parts {
  const Library& library;
  const CudnnAttentionShape& shape;

  Descriptor tensor(std::int64_t id, cudnnDataType_t type, const Dimensions& dimensions,
                    const Dimensions& strides, bool by_value = false) const {
    Descriptor out(library, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    const std::int64_t alignment = by_value ? 4 : 16;
    out.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, &id);
    out.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, &type);
    out.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, dimensions.data(), 4);
    out.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides.data(), 4);
    out.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, &alignment);
    if (by_value) out.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, &by_value);
    out.finalize("a tensor");
    return out;
  }
  /// [batch, sequence, heads, head_dim] in memory.
  Descriptor matrix(std::int64_t id, std::int64_t heads) const {
    return tensor(
        id, shape.bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF,
        {shape.batch, heads, shape.sequence, shape.head_dim},
        {shape.sequence * heads * shape.head_dim, shape.head_dim, heads * shape.head_dim, 1});
  }
  Descriptor statistics() const {
    return tensor(lse_id, CUDNN_DATA_FLOAT, {shape.batch, shape.heads, shape.sequence, 1},
                  {shape.heads * shape.sequence, shape.sequence, 1, 1});
  }
  Descriptor scale() const {
    return tensor(scale_id, CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}, true);
  }

  Descriptor forward() const {
    Descriptor node(library, CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR);
    node.set(CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, matrix(q_id, shape.heads));
    node.set(CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, matrix(k_id, shape.kv_heads));
    node.set(CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, matrix(v_id, shape.kv_heads));
    node.set(CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, matrix(o_id, shape.heads));
    node.set(CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC, statistics());
    node.set(CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC, scale());
    node.finalize("attention forward");
    return node;
  }
  Descriptor backward() const {
    Descriptor node(library, CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR);
    node.set(CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC, matrix(q_id, shape.heads));
    node.set(CUDNN_ATTR_OPERATION_SDPA_BWD_KDESC, matrix(k_id, shape.kv_heads));
    node.set(CUDNN_ATTR_OPERATION_SDPA_BWD_VDESC, matrix(v_id, shape.kv_heads));
    node.set(CUDNN_ATTR_OPERATION_SDPA_BWD_ODESC, matrix(o_id, shape.heads));
    node.set(CUDNN_ATTR_OPERATION_SDPA_BWD_STATSDESC, statistics());
    node.set(CUDNN_ATTR_OPERATION_SDPA_BWD_SCALEDESC, scale());
    node.set(CUDNN_ATTR_OPERATION_SDPA_BWD_DODDESC, matrix(do_id, shape.heads));
    node.set(CUDNN_ATTR_OPERATION_SDPA_BWD_DQDESC, matrix(dq_id, shape.heads));
    node.set(CUDNN_ATTR_OPERATION_SDPA_BWD_DKDESC, matrix(dk_id, shape.kv_heads));
    node.set(CUDNN_ATTR_OPERATION_SDPA_BWD_DVDESC, matrix(dv_id, shape.kv_heads));
    node.finalize("attention backward");
    return node;
  }
};

/// The first of cuDNN's proposals that it can also build.
Descriptor plan_of(const Library& library, cudnnHandle_t handle, const Descriptor& node) {
  Descriptor graph(library, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, node);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, &handle);
  graph.finalize("the graph of attention");
  Descriptor heuristic(library, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, &mode);
  heuristic.finalize("a choice of kernels");
  constexpr std::int64_t most = 8;
  std::vector<Descriptor> engines;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < most; ++i) {
    engines.emplace_back(library, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    raw.push_back(engines.back().get());
  }
  std::int64_t found = 0;
  library.check(library.get_attribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, most, &found, raw.data()),
                "proposals");
  for (std::size_t i = 0; i < static_cast<std::size_t>(found) && i < engines.size(); ++i) {
    Descriptor plan(library, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engines[i]);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, &handle);
    if (plan.finalized()) return plan;
  }
  throw Unsupported(fmt::format("cuDNN {} has no attention of that shape", library.version()));
}

}  // namespace

struct CudnnAttention::State {
  explicit State(const CudnnAttentionShape& wanted)
      : shape(wanted),
        handle(library),
        plan(plan_of(
            library, handle.get(),
            wanted.backward ? Parts{library, shape}.backward() : Parts{library, shape}.forward())) {
    std::int64_t count = 0;
    library.check(library.get_attribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                        CUDNN_TYPE_INT64, 1, &count, &workspace),
                  "the size of its workspace");
  }

  CudnnAttentionShape shape;
  Library library;
  Handle handle;
  Descriptor plan;
  std::int64_t workspace = 0;
  std::vector<std::pair<std::byte*, Descriptor>> packs;  // by the set's first tensor
};

CudnnAttention::CudnnAttention(const CudnnAttentionShape& shape)
    : state_(std::make_unique<State>(shape)) {}
CudnnAttention::~CudnnAttention() = default;

std::size_t CudnnAttention::workspace_bytes() const {
  return static_cast<std::size_t>(state_->workspace);
}

void CudnnAttention::launch(std::span<std::byte* const> tensors, std::byte* workspace,
                            cudaStream_t stream) {
  State& s = *state_;
  const std::size_t count = s.shape.backward ? 9 : 5;
  expects(tensors.size() >= count, "all tensors of attention");
  const Descriptor* pack = nullptr;
  for (const auto& [first, known] : s.packs)
    if (first == tensors[0]) pack = &known;
  if (pack == nullptr) {  // made once for each set of buffers, so that launching stays cheap
    std::vector<std::int64_t> ids;
    std::vector<void*> pointers;
    for (std::size_t i = 0; i < count; ++i) {
      ids.push_back(q_id + static_cast<std::int64_t>(i));
      pointers.push_back(tensors[i]);
    }
    ids.push_back(scale_id);
    pointers.push_back(&s.shape.scale);  // by value: read on the host
    Descriptor made(s.library, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    const auto size = static_cast<std::int64_t>(ids.size());
    void* space = workspace;
    made.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids.data(), size);
    made.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers.data(), size);
    made.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, &space);
    made.finalize("the tensors of attention");
    s.packs.emplace_back(tensors[0], std::move(made));
    pack = &s.packs.back().second;
  }
  s.library.check(s.library.set_stream(s.handle.get(), stream), "cudnnSetStream");
  s.library.check(s.library.execute(s.handle.get(), s.plan.get(), pack->get()), "attention");
}

#else  // built without cuDNN's header

struct CudnnAttention::State {};
CudnnAttention::CudnnAttention(const CudnnAttentionShape&) {
  throw Unsupported("built without cuDNN 9.13 or later");
}
CudnnAttention::~CudnnAttention() = default;
std::size_t CudnnAttention::workspace_bytes() const { return 0; }
void CudnnAttention::launch(std::span<std::byte* const>, std::byte*, cudaStream_t) {
  expects(false, "a plan of cuDNN");
}

#endif

}  // namespace stepcast::calibrate
