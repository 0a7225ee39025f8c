// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/cost/recomputation.h"

#include <array>
#include <utility>

namespace meshwright::sim {

namespace {

constexpr Recomputation kAll{1.0, 1.0, 1.0, 1.0, 1.0, 1.0, true, true, 0.0};
constexpr Recomputation kCore{0.0, 1.0, 0.0, 0.0, 0.0, 0.0, false, false, 0.0};
// Flash attention computes its scores again in any case; products are kept, the cheap rest is computed again.
constexpr Recomputation kMinimal{0.0, 1.0, 0.0, 0.0, 0.0, 1.0, false, false, 0.0};
constexpr Recomputation kContext{0.0, 0.0, 0.0, 0.0, 0.0, 1.0, false, false, 0.0};
constexpr Recomputation kExceptMlp{0.0, 1.0, 0.0, 1.0, 0.0, 1.0, false, false, 0.0};
constexpr Recomputation kContextExceptMlp{0.0, 0.0, 0.0, 1.0, 0.0, 1.0, false, false, 0.0};
constexpr Recomputation kQkv{0.0, 1.0, 1.0, 1.0, 1.0, 1.0, true, false, 0.0};
constexpr Recomputation kContextAlone{1.0, 0.0, 1.0, 1.0, 1.0, 1.0, true, false, 0.0};
constexpr Recomputation kOut{1.0, 1.0, 0.0, 1.0, 1.0, 1.0, true, false, 0.0};
constexpr Recomputation kQkvHost{0.0, 1.0, 1.0, 1.0, 1.0, 1.0, true, false, 1.0};
constexpr Recomputation kMinimalHost{0.0, 1.0, 0.0, 0.0, 0.0, 1.0, false, false, 1.0};
constexpr Recomputation kOps{0.5, 0.0, 0.5, 0.5, 0.5, 1.0, false, false, 0.0};

constexpr std::array<std::pair<const char*, Recomputation>, 15> kPolicies{{{"none", {}}, {"selective", kCore}, {"full", kAll},
    {"minimal", kMinimal}, {"minimal_with_context", kContext}, {"save_dot_except_mlp", kExceptMlp},
    {"save_dot_except_mlpwi", kExceptMlp}, {"save_dot_with_context_except_mlp", kContextExceptMlp}, {"save_qkv_proj", kQkv},
    {"save_out_proj", kOut}, {"save_context", kContextAlone}, {"qkv_proj_offloaded", kQkvHost},
    {"minimal_offloaded", kMinimalHost}, {"selective_op", kOps}, {"custom", kQkvHost}}};

} // namespace

std::optional<Recomputation> recomputationOf(std::string_view policy)
{
    for (const auto& [name, recomputation] : kPolicies) {
        if (name == policy)
            return recomputation;
    }
    return std::nullopt;
}

const std::vector<const char*>& recomputationNames()
{
    static const std::vector<const char*> kNames = [] {
        std::vector<const char*> names;
        for (const auto& [name, recomputation] : kPolicies)
            names.push_back(name);
        return names;
    }();
    return kNames;
}

} // namespace meshwright::sim
