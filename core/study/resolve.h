// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/models/training.h"
#include "core/program/program.h"
#include "core/study/arrays.h"

namespace meshwright {

/// What `buildMlpTraining` is to build for a study: batch, types, initialisers, optimiser, and the constraints that specs of
/// `act.*` ask for (mesh 0 is the study's). `assigned`: of the study. Precondition: the study has an MLP.
///
/// Problems: MW1101 to MW1103 of those specs.
Result<TrainingOptions> trainingOptions(const Study& study, const std::vector<AssignedSpec>& assigned);

/// The same with all specs of the study.
Result<TrainingOptions> trainingOptions(const Study& study);

/// The type that the program of the study's training gives to one of its arrays (`studyArrays`).
DType arrayType(const Study& study, const StudyArray& array);

/// Puts the study's specs (`assigned`) on a program: on each argument of each function that a spec names, on the results that take the
/// place of such arguments (donations) and on results of that name, each closed, with the path of the spec as annotation. Arrays
/// without a spec stay open to propagation. States and gradients with a spec of their own leave the sharding group of their parameter.
///
/// Inputs and activations are propagated first (priority 0), then parameters, gradients and states (priority 1): under FSDP the batch stays
/// where it is and the weights are gathered. The program's mesh 0 becomes the study's mesh, and shardings of its own text follow by the names of axes. For programs that are not MLP the specs by name and by glob apply, rules do not.
///
/// Problems: MW1101 to MW1104 of a spec against the array, MW1110 to MW1115 of the mesh, MW1232 the program's text names axes that the mesh
/// lacks, or needs their sizes; MW1429 a name that no value of the program has.
Result<Done> resolveShardings(const Study& study, const std::vector<AssignedSpec>& assigned, Program& program);

} // namespace meshwright
