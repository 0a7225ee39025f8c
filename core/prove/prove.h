// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/device_program.h"
#include "core/program/program.h"
#include "core/schedule/schedule.h"

#include <cstddef>
#include <stop_token>
#include <string>
#include <vector>

namespace meshwright {

/// What is known of a value of the device function. Its elements are written by dimension, major to minor: `[x:2][y:3][4]` are pieces of 4
/// whose number counts x, then y; `[4 equal]` are copies of one element.
struct ProofValue {
    std::string name; ///< as the program has it
    std::string type; ///< of one device's piece
    std::string pieces; ///< "[x:2][4] x [8] of %3 (dot_general), partial over y by sum"
};

/// Why a device function could not be shown to compute its source.
struct ProofObstacle {
    OpId op; ///< of the device function; invalid: an argument or a result
    std::string opName;
    std::string value; ///< the op's result, as the program names it
    std::string place; ///< of the op in the user's program; often empty
    std::string reason;
    std::vector<ProofValue>
        has; ///< the op's operands, at most 6; of a result that lies otherwise than it is declared, the result
    std::string needs; ///< what that result is declared to be, as ProofValue::pieces; else empty
    /// The shortest programs that show it: the ops from values that stand to the source's up to this one, and what the source does with
    /// those values. Without ops: the source leaves the values as they are. Without blocks: there is no op.
    Function source;
    Function device;
};

struct FunctionProof {
    std::string name;
    std::size_t ops = 0; ///< of the device function
    std::vector<ProofObstacle> obstacles; ///< empty: proved
    bool isByIdentity = false; ///< where the lemmas did not say what a value is, identities did (identity.h)
    std::vector<NamedMesh> meshes = {}; ///< of the device function; of a pipeline one stage's, with the microbatches as an axis

    bool isProved() const { return obstacles.empty(); }
};

struct Proof {
    std::vector<FunctionProof> functions;
    std::int64_t devices = 1;

    double seconds = 0.0; ///< that it took; measured by whoever asked for it

    bool isProved() const; ///< all functions are, and there is one
    std::size_t ops() const;
};

/// Adds what was shown of other functions of the same devices, and its time.
void add(Proof& proof, Proof more);

/// "proved: 1,204 ops on 16,384 devices, 3 functions, equal up to the order of sums", or "not proved: " and the same counts.
std::string headline(const Proof& proof);

/// "step, dot_general act.h1 at model.py:3: its operands are split differently"; empty when all is proved.
std::string firstObstacle(const Proof& proof);

/// Shows that a device function computes a source function, for every input: that each result, laid out as its sharding says, is the source's
/// result. Equal up to the order of sums, and up to rounding where a sum moves past an op that is linear in it. Never claims more than it has
/// shown: a function that is not proved may be right.
///
/// Every value of the device function gets its standing to the values of the source by one lemma for each op (lemmas.h). Where the lemmas do not
/// show a value and the functions are small, an identity does (identity.h). What the partitioner notes of layouts is checked, not trusted. `source` has
/// a sharding for every argument; the device function's meshes are `meshes`.
/// Source of the method: translation validation by value numbering; manual page "proving".
FunctionProof prove(const Function& source, const DeviceFunction& device, const std::vector<NamedMesh>& meshes);

/// The same for all functions of a program after propagation. A function that only one of both has, and one whose mesh is another, is not proved.
/// Precondition: both have a mesh. When `stop` is asked for it ends soon, and the functions that it did not come to are not proved.
Proof prove(const Program& source, const DeviceProgram& device, const std::stop_token& stop = {});

/// The same for what really runs. Of a training that is cut into a pipeline, "init", "evaluate" and "step" of the program for the whole batch:
/// the tasks carry each microbatch through each piece once and in time, and what the pieces' functions compute of all microbatches is what the
/// source computes (pipeline_proof.h).
Proof prove(const Program& source, const ScheduledProgram& scheduled, const std::stop_token& stop = {});

/// A program of one device that was read from a text, as one stage: values lie as their shardings say, in pieces of one size. Without one, arguments and
/// results of blocks lie as what comes in from outside and goes there, and all others are whole.
DeviceProgram deviceProgramOf(Program program);

} // namespace meshwright
