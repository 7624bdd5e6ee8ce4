// Kernel times from calibration tables: products and attention from measured shapes, everything
// else from what was measured of its kind, or from the bytes it moves. The datasheet speaks only
// where nothing is measured.
#pragma once

#include <optional>

#include "sim/kernels/attention_times.hpp"
#include "sim/kernels/elementwise_times.hpp"
#include "sim/kernels/gemm_times.hpp"
#include "sim/kernels/grouped_times.hpp"
#include "sim/kernels/kernel_model.hpp"
#include "sim/kernels/recurrence_times.hpp"
#include "sim/tables/calibration_table.hpp"
#include "workloads/plan/software.hpp"

namespace stepcast::sim {

class CalibratedKernels final : public KernelModel {
 public:
  /// `table` is what merge() made of all tables. Of `software` it takes the attention kernel and
  /// the fusion.
  CalibratedKernels(const CalibrationTable& table, const topology::GpuSpec& gpu,
                    const workloads::Software& software, const topology::HostShare& host = {});

  KernelTime time_of(const workloads::Kernel& kernel) const override;

 private:
  KernelTime gemm(const workloads::Kernel& kernel) const;
  KernelTime grouped(const workloads::Kernel& kernel) const;
  KernelTime one_by_one(const workloads::Kernel& kernel) const;
  KernelTime product(const workloads::Kernel& kernel, const GemmTime& time) const;
  KernelTime attention(const workloads::Kernel& kernel) const;
  KernelTime by_share(const workloads::Kernel& kernel, double share, Provenance provenance) const;
  KernelTime sparse(const workloads::Kernel& kernel) const;
  KernelTime recurrence(const workloads::Kernel& kernel) const;
  KernelTime bytes_moved(const workloads::Kernel& kernel) const;
  KernelTime on_host(const workloads::Kernel& kernel) const;
  void refuse_on_host(const workloads::Kernel& kernel) const;
  KernelTime finished(KernelTime time, double flops, Bytes bytes, workloads::Dtype dtype) const;

  topology::GpuSpec gpu_;
  workloads::Software software_;
  GemmTimes gemms_;
  GroupedTimes grouped_;
  AttentionTimes attentions_;
  RecurrenceTimes recurrences_;
  ElementwiseTimes elementwise_;
  std::optional<double> copy_fraction_;
  topology::HostShare host_;
  double sustained_share_ = 1.0;  // of tensor cores' short-run rate within a step
  double pace_ = 1.0;             // of what is left of it under a cap or a locked clock
};

}  // namespace stepcast::sim
