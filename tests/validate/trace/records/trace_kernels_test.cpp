#include "validate/trace/records/kernels.hpp"

#include <catch2/catch.hpp>

using namespace stepcast;
using namespace stepcast::validate;
using workloads::CollectiveKind;

TEST_CASE("kernels are told by the names that libraries give them") {
  struct Case {
    const char* name;
    TraceKind kind;
  };
  const Case cases[] = {
      {"ampere_fp16_s16816gemm_fp16_128x256_ldg8_f2f_stages_64x3_tn", TraceKind::gemm},
      {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", TraceKind::gemm},
      {"nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NNT", TraceKind::gemm},
      {"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128>",
       TraceKind::gemm},
      {"void cublasLt::splitKreduce_kernel<32, 16, int, float>", TraceKind::gemm},
      {"void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64>>",
       TraceKind::attention_forward},
      {"void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<128>>",
       TraceKind::attention_backward},
      {"void flash_bwd_dot_do_o_kernel<true, Flash_bwd_kernel_traits<64>>",
       TraceKind::attention_backward},
      {"void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<...>>>",
       TraceKind::attention_forward},
      {"void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnBwdSm90<...>>>",
       TraceKind::attention_backward},
      {"fmha_cutlassF_bf16_aligned_64x128_rf_sm80(PyTorchMemEffAttention::AttentionKernel)",
       TraceKind::attention_forward},
      {"fmha_cutlassB_bf16_aligned_128x64_k128_sm80(...)", TraceKind::attention_backward},
      {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7",
       TraceKind::attention_forward},
      {"cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_25",
       TraceKind::attention_backward},
      {"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>",
       TraceKind::norm},
      {"void transformer_engine::normalization::rmsnorm_fwd_general_kernel<...>", TraceKind::norm},
      {"void cuComputePartGradGammaBeta<float>", TraceKind::norm},
      {"triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_3", TraceKind::norm},
      {"triton_poi_fused_mul_silu_5", TraceKind::pointwise},
      {"triton_per_fused_sum_12", TraceKind::reduction},
      {"triton_red_fused__log_softmax_nll_loss_forward_7", TraceKind::softmax},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>",
       TraceKind::pointwise},
      {"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, MeanOps<float>>>",
       TraceKind::reduction},
      {"void (anonymous namespace)::softmax_warp_forward<float, float, float, 11, false>",
       TraceKind::softmax},
      {"void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float>", TraceKind::softmax},
      {"void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16>",
       TraceKind::embedding},
      {"void at::native::(anonymous namespace)::embedding_backward_feature_kernel",
       TraceKind::embedding},
      {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<4>, "
       "FusedAdamMathFunctor<float, 4, (ADAM_MODE)1, false>>",
       TraceKind::optimizer},
      {"void multi_tensor_apply_kernel<TensorListMetadata<1>, L2NormFunctor<float>>",
       TraceKind::optimizer},
      {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<2>, "
       "Copy<float, c10::BFloat16, 2, 1, 1>>",
       TraceKind::copy},
      {"void at::native::(anonymous namespace)::chunk_cat_cuda_kernel<float, c10::BFloat16>",
       TraceKind::copy},
      {"void at::native::(anonymous namespace)::CatArrayBatchedCopy_aligned16_contig<...>",
       TraceKind::copy},
      {"Memcpy DtoD (Device -> Device)", TraceKind::copy},
      {"Memset (Device)", TraceKind::copy},
      {"Memcpy HtoD (Pinned -> Device)", TraceKind::host_copy},
      {"a_kernel_of_my_own", TraceKind::other},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    CHECK(name_of(kind_of_kernel(c.name)) == name_of(c.kind));
    CHECK_FALSE(is_communication(c.name));
  }
}

TEST_CASE("collectives are told by the kernel's name, old and new, and by the profiler's") {
  struct Case {
    const char* name;
    CollectiveKind kind;
  };
  const Case cases[] = {
      {"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
       CollectiveKind::all_gather},
      {"ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(...)", CollectiveKind::reduce_scatter},
      {"ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", CollectiveKind::all_reduce},
      {"ncclDevKernel_AllReduce_Sum_bf16_TREE_LL(...)", CollectiveKind::all_reduce},
      {"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", CollectiveKind::send_receive},
      {"ncclDevKernel_Broadcast_RING_LL(...)", CollectiveKind::broadcast},
      {"ncclDevKernel_Reduce_Sum_f32_RING_LL(...)", CollectiveKind::reduce},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    CHECK(is_communication(c.name));
    CHECK(collective_of(c.name) == c.kind);
  }
  CHECK(collective_of("_allgather_base") == CollectiveKind::all_gather);
  CHECK(collective_of("reduce_scatter_tensor_coalesced") == CollectiveKind::reduce_scatter);
  CHECK(collective_of("all_to_allv") == CollectiveKind::all_to_all);
  CHECK(collective_of("recv 0<-1") == CollectiveKind::send_receive);
  CHECK_FALSE(collective_of("ncclDevKernel_Generic_4(AllReduce)"));
}

TEST_CASE("every family of the simulator has a kind, and no other than kernels of a trace get") {
  for (int f = 0; f <= static_cast<int>(workloads::KernelFamily::optimizer); ++f) {
    const TraceKind kind = kind_of(static_cast<workloads::KernelFamily>(f));
    CHECK(kind != TraceKind::other);
    CHECK(kind != TraceKind::host_copy);
    CHECK_FALSE(name_of(kind).empty());
  }
}
