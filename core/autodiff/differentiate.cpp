// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/autodiff/differentiate.h"

#include "core/autodiff/block_reverse.h"
#include "core/autodiff/custom_derivative.h"
#include "core/autodiff/derivatives.h"
#include "core/program/transform.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace meshwright {

namespace {

constexpr BlockId kBody{std::int32_t{0}};
Problems problemsOf(const Function& function, const std::vector<std::size_t>& wrt, const std::vector<std::size_t>& seeds)
{
    Problems problems;
    const auto checkFloating = [&](const char* what, ValueId value) {
        if (!isFloating(function[value].type.dtype))
            problems.push_back({"MW1311",
                fmt::format("{} {} of \"{}\" is {}: only floating values have derivatives", what, valueText(function, value),
                    function.name, typeText(function[value].type)),
                "differentiate by floating arguments only"});
    };
    for (const std::size_t argument : wrt)
        checkFloating("argument", function.arguments()[argument]);
    for (const std::size_t result : seeds)
        checkFloating("result", function.results()[result]);
    return problems;
}

/// Looks at every op on the way for one without a derivative, and at manual computations for what spoils theirs.
class DerivativeCheck {
public:
    DerivativeCheck(const Function& function, const Activity& active, const std::vector<NamedMesh>& meshes)
        : m_function(function)
        , m_active(active)
        , m_meshes(meshes)
    {
    }

    Problems run()
    {
        visit(kBody, nullptr);
        return std::move(m_problems);
    }

private:
    void visit(BlockId block, const Mesh* manual)
    {
        for (const OpId id : m_function[block].ops) {
            const Op& op = m_function[id];
            const bool isOfStatistics = op.kind == OpKind::Attention && m_active(op.results[1]);
            const bool isUnknown = isOfStatistics || differentiability(m_function, op) == Differentiability::Unknown
                || (isBodyCollective(op) && manual == nullptr) || (isManual(op) && m_meshes.empty());
            if (isUnknown && isOnTheWay(op))
                report(op);
            if (isBodyCollective(op) && manual != nullptr) {
                if (const auto collective = bodyCollective(m_function, op, *manual); !collective)
                    append(m_problems, collective.error());
            }
            if (customDerivative(op).results > 0)
                continue; // the rule itself is only carried out
            const Mesh* inside = manual;
            if (isManual(op) && !m_meshes.empty())
                inside = &m_meshes[static_cast<std::size_t>(meshIndexOf(op.as<ComputationAttributes>()))].mesh;
            for (const BlockId body : op.bodies)
                visit(body, inside);
        }
    }

    bool isOnTheWay(const Op& op) const
    {
        const auto isActive = [this](ValueId value) { return m_active(value); };
        return std::any_of(op.operands.begin(), op.operands.end(), isActive)
            && std::any_of(op.results.begin(), op.results.end(), isActive);
    }

    void report(const Op& op)
    {
        if (m_reported.insert(std::string(opName(op))).second)
            m_problems.push_back({"MW1310",
                fmt::format("no derivative is known for {}, which makes {} in \"{}\"", opName(op),
                    valueText(m_function, op.results.front()), m_function.name),
                "keep it out of what the loss depends on, or differentiate before the program is partitioned"});
    }

    const Function& m_function;
    const Activity& m_active;
    const std::vector<NamedMesh>& m_meshes;
    std::set<std::string> m_reported;
    Problems m_problems;
};

/// All manual computations say where values become different from device to device.
void varyAll(Function& function, const Activity& active, const std::vector<NamedMesh>& meshes)
{
    std::vector<OpId> computations;
    forEachOp(function, [&](OpId id) {
        if (isManual(function[id]))
            computations.push_back(id);
    });
    for (const OpId id : computations)
        insertVaried(function, id, meshes[static_cast<std::size_t>(meshIndexOf(function[id].as<ComputationAttributes>()))].mesh,
            [&active](ValueId value) { return active(value); });
}

std::string nameOr(const std::string& name, const std::string& other, std::size_t index)
{
    return name.empty() ? fmt::format("{}{}", other, index) : name;
}

} // namespace

Result<Differentiated> differentiate(const Function& function, const std::vector<std::size_t>& wrt,
    const std::vector<std::size_t>& seeds, const ResidualChoice& residualOf, const std::vector<NamedMesh>& meshes)
{
    if (Problems problems = problemsOf(function, wrt, seeds); !problems.empty())
        return problems;
    Function forward = function;
    const bool manual = hasManualComputation(function);
    {
        const Activity activeBefore(function, wrt, seeds);
        if (Problems problems = DerivativeCheck(function, activeBefore, meshes).run(); !problems.empty())
            return problems;
        if (manual && !meshes.empty())
            varyAll(forward, activeBefore, meshes);
    }
    const Function varied = forward; // what `active` speaks of
    const Activity active(varied, wrt, seeds);

    const Surroundings outside{meshes, residualOf, function.ops.size()};
    std::vector<Seed> seeded;
    for (const std::size_t seed : seeds)
        seeded.push_back({seed});
    BlockReverse reverse(forward, active, kBody, seeded, outside);
    Builder& builder = reverse.builder();
    for (std::size_t i = 0; i < seeds.size(); ++i) {
        const std::string name = function.resultNames.empty() ? std::string() : function.resultNames[seeds[i]];
        builder.named(reverse.seedArguments()[i], "ct." + nameOr(name, "", seeds[i]));
    }
    std::vector<ValueId> gradients;
    std::vector<std::string> gradientNames;
    for (const std::size_t index : wrt) {
        const ValueId argument = function.arguments()[index];
        ValueId gradient = reverse.cotangent(argument);
        if (!gradient.valid())
            gradient = builder.splat(function[argument].type, 0.0);
        // Each gradient is a value of its own, so that it can have a name and a layout: the identity where two would be one.
        const bool isTaken = !builder.function()[gradient].producer.valid()
            || std::find(gradients.begin(), gradients.end(), gradient) != gradients.end();
        if (isTaken)
            gradient = builder.add(OpKind::Reshape, {gradient}, ReshapeAttributes{function[argument].type.shape});
        gradientNames.push_back("grad." + nameOr(function[argument].name, "", index));
        builder.named(gradient, gradientNames.back());
        builder.function()[gradient].role = Role::Gradient;
        gradients.push_back(gradient);
    }
    auto [backward, residuals] = reverse.finish(std::move(gradients));
    backward.name = function.name + ".bwd";
    backward.resultNames = std::move(gradientNames);

    forward.name = function.name + ".fwd";
    forward.donations.clear();
    for (std::size_t i = 0; i < residuals.size(); ++i) {
        forward.body().results.push_back(residuals[i]);
        if (!forward.resultNames.empty())
            forward.resultNames.push_back(fmt::format("residual.{}", nameOr(forward[residuals[i]].name, "", i)));
        if (!forward.resultShardings.empty())
            forward.resultShardings.emplace_back();
    }
    if (manual) {
        eraseVaried(forward);
        eraseDeadOps(backward); // sums over devices that became others
    }
    return Differentiated{compacted(std::move(forward)), compacted(std::move(backward))};
}

} // namespace meshwright
