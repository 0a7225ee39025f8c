// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/study/study.h"

#include <string>
#include <utility>
#include <vector>

namespace meshwright::sim {

/// A plan that people know by a name, as specs on a mesh that a study already has.
struct MeshTemplate {
    std::string name; ///< "FSDP + TP 2", as `parseFixed` takes it
    std::string splits; ///< "batch and weights over data; heads and feed-forward over model"
    std::vector<std::pair<std::string, std::string>>
        specs; ///< array (as studies name it) and its PartitionSpec; all others stay whole
    std::vector<std::string> settings; ///< `path=value`: with them in place the study is that plan
};

/// The named plans (`search --plan`) that a study's model can have on the study's own mesh: those with which `checkStudy` has no error. DDP, ZeRO-1,
/// ZeRO-2, FSDP, HSDP where two axes split the batch, and Megatron (ZeRO-1 and sequence parallelism) where one splits heads, each with tensor,
/// pipeline, context and expert axes as the mesh has them.
///
/// An axis is what its name says: model, tensor, tp; pipe, pipeline, pp, stage; context, cp, sequence, seq; expert, ep; the others split the batch. Of
/// axes whose names say nothing (x, y) the last one is also tried as a tensor axis. What a model has no use for splits the batch too.
///
/// Empty: the study has specs, a program file for a model, or one device.
std::vector<MeshTemplate> meshTemplates(const Study& study);

/// The template that a plan's name asks for: all of its words, or the only one that has the words. Problems: MW1938 none, or several.
Result<MeshTemplate> templateNamed(const std::vector<MeshTemplate>& templates, const std::string& plan);

} // namespace meshwright::sim
