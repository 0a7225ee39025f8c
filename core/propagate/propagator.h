// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/propagate/factor_propagation.h"
#include "core/propagate/flow_graph.h"
#include "core/propagate/propagate.h"

#include <array>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace meshwright {

/// Spreads shardings over one function. Part of `propagate`.
class Propagator {
public:
    Propagator(Function& function, const std::vector<NamedMesh>& meshes, PropagationStrategy strategy)
        : m_function(function)
        , m_meshes(meshes)
        , m_strategy(strategy)
    {
        for (std::size_t i = 0; i < meshes.size(); ++i) {
            std::int32_t equal = static_cast<std::int32_t>(i);
            for (std::size_t j = 0; j < i && equal == static_cast<std::int32_t>(i); ++j) {
                if (meshes[j].mesh == meshes[i].mesh)
                    equal = static_cast<std::int32_t>(j);
            }
            m_meshClass.push_back(meshes[i].mesh.axes().empty() ? -1 : equal);
        }
    }

    Result<PropagationReport> run();

private:
    /// What of a node's factors may be propagated at the current level.
    enum class Reach : std::uint8_t { Nothing, PassThroughBackward, PassThroughBoth, AllForward, AllBackward, AllBoth };

    /// Why a slot's dimension has an axis, in the form it is collected in.
    struct Step {
        std::uint32_t slot = 0;
        ValueId value;
        ValueId from;
        const FlowNode* node = nullptr; ///< none: written by the user
        std::uint32_t annotation = 0; ///< index into the labels
        std::uint16_t dim = 0;
        std::uint16_t factor = 0;
        AxisRef axis;
        bool aggressive = false;
        StepDirection direction = StepDirection::None;
        std::int8_t userPriority = 0;
        std::int8_t opPriority = -1;
    };

    struct SlotState {
        std::optional<TensorSharding> sharding;
        std::uint64_t changed = 1; ///< the time of the last change
        bool hasAxes = false;
        std::vector<std::uint32_t> steps; ///< indices into the list of all steps
    };

    struct NodeState {
        std::array<std::uint64_t, 2> seen = {0, 0}; ///< by strategy: when it was last looked at
        std::array<Reach, 2> reach = {Reach::Nothing, Reach::Nothing};
        bool queued = false;
    };

    static bool anyAxes(const TensorSharding& sharding);
    static bool collidesWithAny(const AxisRef& axis, const AxisRefs& others);

    // --- before propagation

    /// A constraint's result has its sharding, and so has its input where nothing speaks against it.
    void adoptConstraints();

    /// The arguments of a computation's block and its results have the shardings that it names, the former without the manual axes.
    void adoptComputations();

    /// Uses of the input of a chain of constraints that come after the chain use its end instead.
    void redirectChains(const std::vector<OpId>& constraints, const std::vector<std::vector<OpId>>& constraintsOf);
    Problems checkShardings() const;
    void openGroups();
    void closeTo(std::uint32_t slot, const std::vector<std::int32_t>& manualAxes);
    ValueId openedFor(ValueId value, std::int32_t mesh);
    Problems initialise();
    void addUserSteps(std::uint32_t slot, ValueId value, std::string label);
    void addStep(const Step& step);

    const Mesh& meshOf(const TensorSharding& sharding) const { return m_meshes[static_cast<std::size_t>(sharding.mesh)].mesh; }

    // --- the order of propagation

    void propagateAll();
    void byOpPriority();

    /// Dimensions of later priorities are hidden, their axes set aside, until it is their turn (2.8).
    void byUserPriority();
    void restore(std::uint32_t slot, const TensorSharding& original, int priority);
    void touch(std::uint32_t slot);

    /// Factors of one op priority: what may be propagated, and which way (2.7).
    static Reach reachAt(const FlowNode& node, int level);
    void toFixedPoint(bool aggressive, int level);

    /// What is asked of the function's results goes to the returned values, and back.
    void pushResults(bool aggressive);
    void visit(std::uint32_t index, bool aggressive, int level);

    // --- one node

    /// The mesh that the node's shardings speak of; nothing when there is none, or two.
    std::optional<std::int32_t> commonMesh(const FlowNode& node) const;
    const DimFactors& dimsOf(const FlowNode& node, std::size_t tensor) const;

    /// What a node sees of a tensor's sharding; valid until the next call.
    const std::optional<TensorSharding>& seen(const FlowNode& node, std::size_t tensor) const;
    void projectNode(const FlowNode& node);
    bool anyAxesAt(const FlowNode& node) const;
    void propagateThrough(const FlowNode& node, bool aggressive, Reach reach);

    struct Update {
        std::size_t tensor = 0;
        std::size_t dim = 0;
        AxisRefs axes;
        std::vector<Step> steps;
    };

    void apply(const FlowNode& node, std::int32_t mesh, bool aggressive);

    /// Where an axis comes from: another tensor of the op that has it along the same factor.
    Step stepFor(const FlowNode& node, std::size_t tensor, std::size_t dim, const AxisRef& axis, bool aggressive) const;
    void applyOne(const FlowNode& node, std::int32_t mesh, const Update& update);

    // --- after propagation

    /// Where tensors of an op still disagree about a factor: what each lacks, and why.
    void collectConflicts();
    void collectConflicts(const FlowNode& node, std::size_t factor, std::set<std::tuple<ValueId, std::size_t, AxisRef>>& seen);

    std::string conflictReason(
        const FlowNode& node, std::size_t tensor, std::size_t dim, const AxisRef& axis, ValueId owner) const;

    /// Whose annotation brought an axis to a dimension.
    std::string annotationOf(std::uint32_t slot, std::size_t dim, const AxisRef& axis) const;

    /// Whose annotation stands in the way of an axis: of the dimension that has it, or of what the wanted dimension has.
    std::string winnerOf(std::uint32_t slot, std::size_t dim, const AxisRef& axis) const;

    /// " (sharding.x)": whose annotation split a dimension.
    std::string by(std::uint32_t slot, std::size_t dim) const;
    std::optional<TensorSharding> finalSharding(const std::optional<TensorSharding>& sharding, std::size_t rank) const;
    void writeBack();

    /// The names that Shardy gives.
    static std::string factorName(std::uint16_t factor);
    std::string stepText(const Step& step) const;
    void materialise(const std::vector<std::pair<ValueId, ValueId>>& merged);

    Function& m_function;
    const std::vector<NamedMesh>& m_meshes;
    PropagationStrategy m_strategy;
    std::vector<std::int32_t> m_meshClass; ///< of each mesh the first that is equal; -1 for meshes without axes, which fit any
    FlowGraph m_graph;
    std::vector<SlotState> m_slots;
    std::vector<std::pair<ValueId, std::vector<std::int32_t>>> m_manualResults; ///< of computations, with their manual axes
    std::int32_t m_firstMesh = 0; ///< that a sharding speaks of: of whole values too, of which nobody says anything
    std::vector<std::pair<std::uint32_t, AxisRefs>> m_closed; ///< slots that `closeTo` closed, and what they replicated before
    std::vector<NodeState> m_nodeStates;
    NodeState* m_current = nullptr; ///< of the node at work
    std::vector<std::uint32_t> m_queue; ///< last in, first out
    std::uint64_t m_clock = 1;
    std::vector<Step> m_steps;
    std::vector<std::string> m_labels;
    std::int8_t m_userPriority = 0; ///< whose turn it is
    std::int8_t m_opPriority = -1;
    mutable std::optional<TensorSharding> m_seen;
    std::vector<TensorFactorShardings> m_tensors;
    std::vector<FactorDirection> m_directions;
    FactorScratch m_scratch;
    std::vector<Update> m_updates;
    PropagationReport m_report;
};

} // namespace meshwright
