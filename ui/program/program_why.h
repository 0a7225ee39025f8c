// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/session/program_graph.h"

#include <QString>

#include <set>

namespace meshwright::ui {

/// Why a value is sharded as it is, as HTML: its type and spec, for each axis the way back to the annotation that it comes from, and the axes that
/// were wanted and lost. Values are links: `value:12`; annotations of the study too: `spec:sharding.x`.
QString valueWhyHtml(const sim::ProgramGraph& graph, ValueId value);

/// What a collective moves, how long it takes, and what it is caused by.
QString collectiveWhyHtml(const sim::ProgramGraph& graph, std::size_t index);

/// The values on the ways back from a value to the annotations, the value itself included.
std::set<ValueId> valuesOnTheWay(const sim::ProgramGraph& graph, ValueId value);

/// One step of the propagation in a sentence: "layers.0.out gets data in dimension 0 from x through dot_general".
QString stepText(const sim::ProgramGraph& graph, std::size_t step);

} // namespace meshwright::ui
