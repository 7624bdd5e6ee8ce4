#include "sim/told/path_edges.hpp"

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

const char* word_of(Phase phase) {
  switch (phase) {
    case Phase::steady:
      return "steady";
    case Phase::fill:
      return "fill";
    case Phase::drain:
      return "drain";
  }
  throw BrokenPromise("unknown phase");
}

const char* word_of(engine::PathEdge::Kind kind) {
  switch (kind) {
    case engine::PathEdge::Kind::kernel:
      return "kernel";
    case engine::PathEdge::Kind::transfer:
      return "transfer";
    case engine::PathEdge::Kind::host:
      return "host";
  }
  throw BrokenPromise("unknown edge");
}

const Form<SharedLink>& shared_link_form() {
  using L = const SharedLink&;
  static const Form<SharedLink> form =
      Form<SharedLink>("shared_link")
          .has("link", "One of those that are alike.", [](L l) { return l.link; })
          .has("rivals", "What else moves on it.", [](L l) { return l.rivals; })
          .has("time_ps", "Longer for it.", [](L l) { return l.time.count(); });
  return form;
}

bool slowed(const NamedEdge& e, bool kernel) {
  return e.edge.extra != Duration{} && (e.edge.kind == engine::PathEdge::Kind::kernel) == kernel;
}

}  // namespace

const Form<EdgeFrom>& edge_form() {
  using E = const EdgeFrom&;
  using N = const NamedEdge&;
  // What only a slowed kernel has, or only another slowed edge.
  const auto where_slowed = [](bool kernel, auto get) {
    return [=](E e) { return slowed(e.of, kernel) ? std::optional(get(e.of)) : std::nullopt; };
  };
  const auto extra_ps = [](N e) { return e.edge.extra.count(); };
  static const Form<EdgeFrom> form =
      Form<EdgeFrom>("edge")
          .word("kind", "", {"kernel", "transfer", "host"},
                [](E e) { return word_of(e.of.edge.kind); })
          .has("what", "\"gemm\", \"tensor all_reduce\", \"launch\".",
               [](E e) { return e.of.what; })
          .has("name", "In the step program; of the host what it launched last.",
               [](E e) { return e.of.name; })
          .has("rank", "", [](E e) { return e.of.rank; })
          .has("stage", "Of the pipeline.", [](E e) { return e.of.stage; })
          .has("lane", "A stream of the GPU, or the host.", [](E e) { return e.of.lane; })
          .has("begin_ps", "From the begin of the path.",
               [](E e) { return (e.of.edge.from - e.begin).count(); })
          .has("length_ps", "", [](E e) { return e.of.edge.length().count(); })
          .has("after", "What it waited for.", [](E e) { return e.of.after; })
          .word("phase", "Of the pipeline.", {"steady", "fill", "drain"},
                [](E e) { return word_of(e.of.phase); })
          .has("provenance", "Where its time comes from; none of the host.",
               [](E e) {
                 return e.of.provenance ? std::optional(std::string(name_of(*e.of.provenance)))
                                        : std::nullopt;
               })
          .has("beside", "What slowed the kernel.",
               where_slowed(true, [](N e) { return e.beside; }))
          .list("shared", "The links that it had to share.", shared_link_form(),
                where_slowed(false, [](N e) { return e.shared; }))
          .has("interference_ps", "The kernel was so much longer.", where_slowed(true, extra_ps))
          .has("sharing_ps", "The transfer was so much longer.", where_slowed(false, extra_ps));
  return form;
}

std::vector<EdgeFrom> edges_of(const NamedPath& path) {
  std::vector<EdgeFrom> out;
  for (const NamedEdge& e : path.edges) out.push_back({e, path.edges.front().edge.from});
  return out;
}

}  // namespace stepcast::sim
