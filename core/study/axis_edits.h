// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/study/study.h"

namespace meshwright {

// Edits of mesh axes that concern more than the mesh, as settings (`path=value`, see `applySettings`).

/// Gives an axis another name: in the mesh, in the meshes of phases, in specs, rules and the pipeline.
/// Preconditions: the study has the axis `from` and none named `to`, which is a name for an axis.
std::vector<std::string> renameAxisSettings(const Study& study, const std::string& from, const std::string& to);

/// Takes an axis out of the mesh and of everything that names it. A device order goes too, unless the axis has size 1.
std::vector<std::string> removeAxisSettings(const Study& study, const std::string& axis);

/// The mesh as the value of a setting: `{data: 4, model: 2}`, with its device order.
std::string meshValue(const std::vector<MeshAxis>& mesh, const std::vector<DeviceId>& order);

/// What is wrong with a name for a new axis of the study's mesh; empty when nothing is.
std::string axisNameProblem(const Study& study, const std::string& name);

} // namespace meshwright
