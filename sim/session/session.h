// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/schedule/schedule.h"
#include "sim/collective/placement.h"
#include "sim/session/engine.h"

#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

namespace meshwright::sim {

/// A study as it stands while it is edited: the text, and settings (`path=value`, as --set takes them) over it.
struct StudySource {
    std::string text;
    std::string file; ///< where it came from; names relative files and problems. Empty: nowhere yet
    std::vector<std::string> settings;

    friend bool operator==(const StudySource&, const StudySource&) = default;
};

/// A value of the step's program that has a name, as it lies on the mesh.
struct ProgramArray {
    std::string name; ///< "layers.1.w", "x", "act.layers.1", "grad.layers.0.b"
    Role role = Role::Activation;
    TensorType type; ///< of the whole array
    TensorSharding sharding;
    std::string spec; ///< "P('data', None)"
    std::string annotation; ///< where the user asked for it ("sharding.x"); empty: it follows from others
    ValueId value; ///< in the propagated main function
};

/// Where arrays of a role stand in lists: parameters and their family first, which people look for.
std::size_t rankOf(Role role);

/// Everything that views and reports show of one study. What its problems prevent is null, the rest is there; nothing in it ever changes.
struct Analysis : StepParts {
    StudySource source;
    std::shared_ptr<const Study> study; ///< null: the text is not a study
    std::shared_ptr<const SimulatedStudy> simulated; ///< null without a placement
    std::vector<ProgramArray> arrays; ///< parameters, states, gradients, inputs, activations: in that order, then the program's

    /// The array of this name; null when there is none.
    const ProgramArray* findArray(const std::string& name) const;

    /// The mesh of the study's first phase. Precondition: built.
    const Mesh& mesh() const { return built->partitioned.device.stages.front().mesh(); }

    /// Why an array is sharded this way, in a sentence. Precondition: built.
    std::string reasonOf(const ProgramArray& array) const;
};

/// Reads, checks, builds, propagates, partitions, schedules and simulates, as far as the study allows. Null when `stop` was asked for before it was
/// done.
/// `proves`: the proof of what was built too.
std::shared_ptr<const Analysis> analysed(
    const StudySource& source, const Catalogue& catalogue, const std::stop_token& stop = {}, bool proves = true);

/// The engine as windows use it: analyses by content, remembered.
///
/// Thread-safe: any number of threads may ask at once. Results are shared and never change.
class Session {
public:
    explicit Session(Catalogue catalogue);

    const Catalogue& catalogue() const { return m_catalogue; }

    /// As `analysed`. The last `kRememberedAnalyses` answers are kept; one that was kept without its proof, and is asked for with it, is proved and
    /// otherwise the same.
    std::shared_ptr<const Analysis> analyse(const StudySource& source, const std::stop_token& stop = {}, bool proves = true);

    static constexpr std::size_t kRememberedAnalyses = 64;

private:
    std::shared_ptr<const Analysis> remembered(const StudySource& source);
    void remember(std::shared_ptr<const Analysis> analysis);

    Catalogue m_catalogue;
    std::mutex m_mutex; ///< guards m_remembered
    std::vector<std::shared_ptr<const Analysis>> m_remembered; ///< the latest used last
};

} // namespace meshwright::sim
