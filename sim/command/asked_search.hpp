// What `stepcast search` asks, and its answer: the plans of a space in their order, proven. Knows
// nothing that prints or keeps them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include "sim/program/command_line.hpp"
#include "sim/run/session.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/told/search.hpp"

namespace stepcast::sim {

class Confidence;

/// The command line of `verb`, search, as one document, with what is said of the space under
/// [space]. Throws InputError and UsageError.
TomlValue asked_search(const Verb& verb, const Arguments& arguments, const Catalogue& catalogue);

struct AskedSearch {
  SearchAnswer answer;  // nothing is found yet
  TomlValue base;       // without [space]
};

/// Of such a document, with what the arguments say of the search. Throws InputError and UsageError.
AskedSearch open_search(const TomlValue& asked, const Arguments& arguments,
                        const Catalogue& catalogue);

/// The user's own plan, where there is one; `why_not` is told why one cannot be run.
std::optional<Scenario> own_plan(const AskedSearch& asked, const Catalogue& catalogue,
                                 const std::function<void(const InputError&)>& why_not);

/// What simulates them: in the session, none that the framework cannot be told to run.
SearchMachine machine_of(const SearchAnswer& answer, Session& session);

/// Finds the plans. Throws InputError where the space has no legal one.
void find_plans(AskedSearch& asked, const SearchMachine& machine, const std::atomic<bool>& stop);

/// Adds to what is found the error bars, what failures leave where a whole run is asked for, and
/// the user's own plan.
void complete_search(SearchAnswer& answer, const std::optional<Scenario>& own,
                     const SearchMachine& machine, Session& session,
                     const std::shared_ptr<Confidence>& confidence);

}  // namespace stepcast::sim
