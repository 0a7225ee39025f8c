// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/diagnose/explain_message.h"
#include "core/diagnose/layout_change.h"
#include "core/diagnose/log_text.h"
#include "core/support/text.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace tst_explain_message {

using namespace meshwright;

class TestExplainMessage : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void kinds_data();
    void kinds();
    void collectivesOfOneNumber();
    void everyKindIsTested();
    void says_data();
    void says();
    void omits_data();
    void omits();
    void rematerializationPath_data();
    void rematerializationPath();
    void firstWayOut();
    void givenMesh_data();
    void givenMesh();
    void meshIsTaken();
    void logs();
    void neighboursStayApart_data();
    void neighboursStayApart();
    void wrappedLines_data();
    void wrappedLines();
    void equalMessagesOnce();
    void unknown_data();
    void unknown();
    void tracebacks_data();
    void tracebacks();
    void hostile_data();
    void hostile();
    void fitsTheTerminal();
    void lines();
    void slicesMoveNothing();

private:
    std::set<std::string> m_seen;
};

namespace {

/// What the issues of JAX, XLA and PyTorch quote, one of each kind and wording.
const std::vector<std::tuple<const char*, const char*, const char*>> kMessages = {
    {"removed, JAX's words", "old-name",
        "AttributeError: jax.sharding.PositionalSharding was deprecated in JAX v0.6.0 and removed in JAX v0.7.0"},
    {"removed, with a guess", "old-name",
        "AttributeError: jax.sharding.GSPMDSharding was deprecated in JAX v0.6.0 and removed in JAX v0.7.0. Did you mean: "
        "'NamedSharding'?"},
    {"removed, Python's words", "old-name", "AttributeError: module 'jax.sharding' has no attribute 'OpShardingSharding'"},
    {"removed, import", "old-name",
        "ImportError: cannot import name 'PositionalSharding' from 'jax.sharding' "
        "(/usr/lib/python3/dist-packages/jax/sharding.py)"},
    {"removed, module", "old-name", "ModuleNotFoundError: No module named 'jax.experimental.maps'"},
    {"moved, warning", "old-name",
        "train.py:3: DeprecationWarning: jax.experimental.shard_map is deprecated in v0.8.0. Used jax.shard_map instead."},
    {"moved, linear_util", "old-name", "AttributeError: module 'jax' has no attribute 'linear_util'"},
    {"renamed, check_rep", "old-argument", "TypeError: shard_map() got an unexpected keyword argument 'check_rep'"},
    {"renamed, resources", "old-argument", "TypeError: pjit() got an unexpected keyword argument 'in_axis_resources'"},
    {"axis types", "axis-types-default",
        "DeprecationWarning: The default axis_types will change in JAX v0.9.0 to jax.sharding.AxisType.Explicit. To maintain the "
        "old behavior, pass "
        "`axis_types=(jax.sharding.AxisType.Auto,) * len(axis_names)`."},
    {"rematerialization, 2022", "full-rematerialization",
        "E external/org_tensorflow/tensorflow/compiler/xla/service/spmd/spmd_partitioner.cc:509] [spmd] Involuntary full "
        "rematerialization. The compiled "
        "was not able to go from sharding {devices=[4,1,1,1]0,1,2,3} to {devices=[2,1,1,2]0,1,2,3} without doing a full "
        "rematerialization of the tensor."},
    {"rematerialization, 2024", "full-rematerialization",
        "E0531 10:54:04.832741 2609008 spmd_partitioner.cc:569] [spmd] Involuntary full rematerialization. The compiler was not "
        "able to go from sharding "
        "{devices=[2,1,4]<=[4,2]T(1,0)} to {devices=[1,8,1]<=[8]} without doing a full rematerialization of the tensor. You "
        "probably want to enrich the "
        "sharding annotations to prevent this from happening."},
    {"rematerialization, Shardy", "full-rematerialization",
        "W1015 18:20:08.668874 12979952 spmd_partitioner.cc:645] [SPMD] Involuntary full rematerialization. The compiler cannot "
        "go from sharding "
        "{devices=[2,32,4]<=[2,8,4,4]T(0,2,1,3) last_tile_dim_replicate} to {devices=[1,256]<=[256]} efficiently for HLO "
        "operation %param = f32[1024,64]{1,0} "
        "parameter(0), sharding={devices=[2,32,4]<=[2,8,4,4]T(0,2,1,3) last_tile_dim_replicate}, metadata={op_name=\"x\"}. As "
        "the last resort, SPMD will "
        "replicate the tensor and then partition it to obtain the target sharding, which is inefficient. This issue will be "
        "fixed by Shardy partitioner in the "
        "future, which is tracked in b/433785288. Contact Shardy or XLA team for help."},
    {"indivisible, jit", "not-divisible",
        "ValueError: One of pjit arguments with pytree key path ['x'] was given the sharding of NamedSharding(mesh=Mesh('data': "
        "4, axis_types=(Auto,)), "
        "spec=PartitionSpec('data', None), memory_kind=device), which implies that the global size of its dimension 0 should be "
        "divisible by 4, but it is "
        "equal to 10 (full shape: (10, 4))"},
    {"indivisible, shard_shape", "not-divisible",
        "ValueError: Sharding NamedSharding(mesh=Mesh('x': 4, 'y': 2), spec=PartitionSpec('x', 'y')) implies that array axis 1 "
        "is partitioned 2 times, but the "
        "dimension size is 3 (full shape: (8, 3), per-dimension tiling factors: [4, 2] should evenly divide the shape)"},
    {"indivisible, type", "not-divisible",
        "ValueError: Sharding spec ('fsdp',) implies that array axis 0 is partitioned 2 times, but does not evenly divide the "
        "dimension size 50431. Got shape: "
        "(50431, 256) and sharding NamedSharding(mesh=AbstractMesh('fsdp': 2), spec=P('fsdp', None))"},
    {"indivisible, shard_map", "not-divisible",
        "ValueError: shard_map applied to the function 'f' was given argument arrays with axis sizes that are not evenly "
        "divisible by the corresponding mesh "
        "axis sizes:\n\nThe mesh given has shape (4, 2) with corresponding axis names ('i', 'j').\n\nargs[0] of shape "
        "float32[2,2] corresponds to in_specs[0] of "
        "value PartitionSpec('i',), which maps array axis 0 (of size 2) to mesh axis 'i' (of size 4), but 4 does not evenly "
        "divide 2\n\nArray arguments' axis "
        "sizes must be evenly divisible"},
    {"indivisible, jit, two dimensions", "not-divisible",
        "ValueError: One of pjit arguments with pytree key path batch['ids'] was given the sharding of "
        "NamedSharding(mesh=Mesh('r': 3, 's': 2), spec=PartitionSpec('r', ('s',)), memory_kind=device), which implies that the "
        "global size of its dimension 0 should be divisible by 3, but it is equal to 7 (full shape: (7, 5))"},
    {"indivisible, jit, as long as can be", "not-divisible",
        "ValueError: One of pjit arguments was given the sharding of NamedSharding(mesh=Mesh('r': 2), spec=PartitionSpec('r',), "
        "memory_kind=device), which implies that the global size of its dimension 0 should be divisible by 2, but it is equal to "
        "9223372036854775807 (full shape: (9223372036854775807,))"},
    {"indivisible, shard_map, two dimensions", "not-divisible",
        "ValueError: shard_map applied to the function 'mlp' was given argument arrays with axis sizes that are not evenly "
        "divisible by the corresponding mesh axis sizes:\n\nThe mesh given has shape (2, 2, 4) with corresponding axis names "
        "('d', 'e', 'm').\n\nthe passed args[0] of shape bfloat16[6,9,128], where args[0] is bound to mlp's parameter 'h', "
        "corresponds to in_specs[0] of value P(('d', 'e'), 'm'), which maps array axis 0 (of size 6) to mesh axes ('d', 'e') (of "
        "total size 4), but 4 does not evenly divide 6, and array axis 1 (of size 9) to mesh axis 'm' (of size 4), but 4 does "
        "not evenly divide 9\n\nArray arguments' axis sizes must be evenly divisible"},
    {"indivisible, shard_map, bullets", "not-divisible",
        "ValueError: shard_map applied to the function 'step' was given argument arrays with axis sizes that are not evenly "
        "divisible by the corresponding mesh axis sizes:\n\nThe mesh given has shape (4, 2) with corresponding axis names "
        "('i', 'j').\n\n* the passed args[0]['w'] of shape float32[6,5], where args[0] is bound to step's parameter 'params', "
        "corresponds to in_specs[0]['w'] of value P('i', 'j'), which maps array axis 0 (of size 6) to mesh axis 'i' (of size 4), "
        "but 4 does not evenly divide 6\n\n* the passed args[0]['w'] of shape float32[6,5], where args[0] is bound to step's "
        "parameter 'params', corresponds to in_specs[0]['w'] of value P('i', 'j'), which maps array axis 1 (of size 5) to mesh "
        "axis 'j' (of size 2), but 2 does not evenly divide 5\n\n* the passed args[2] of shape int32[10], where args[2] is the "
        "index 1 component of step's varargs parameter 'rest', corresponds to in_specs[2] of value P('i',), which maps array "
        "axis 0 (of size 10) to mesh axis 'i' (of size 4), but 4 does not evenly divide 10\n\nArray arguments' axis sizes must "
        "be evenly divisible by the mesh axis or axes indicated by the corresponding elements of the argument's in_specs entry."},
    {"indivisible, shard_map, the engine's words", "not-divisible",
        "ValueError: shard_map was given argument arrays with axis sizes that are not evenly divisible by the corresponding mesh "
        "axis sizes: P(('f', 'g'), 'h') maps array axis 0 (of size 20) to mesh axes ('f', 'g') (of total size 8), but 8 does "
        "not evenly divide 20\nerror MW1104: dim 0 of size 20 is not divisible by 8\n  fix: make it 16 or 24\nerror MW1104: dim "
        "1 of size 7 is not divisible by 4\n  fix: make it 4 or 8, or leave the dimension whole"},
    {"rank", "rank-too-small",
        "ValueError: One of pjit arguments is incompatible with its sharding annotation NamedSharding(mesh=Mesh('x': 2, 'y': 1), "
        "spec=PartitionSpec('x', 'y')): "
        "Sharding NamedSharding(mesh=Mesh('x': 2, 'y': 1), spec=PartitionSpec('x', 'y')) is only valid for values of rank at "
        "least 2, but was applied to a "
        "value of rank 1"},
    {"rank, shard_map", "rank-too-small",
        "shard_map applied to the function 'f' was given an out_specs entry which is too long to be compatible with the "
        "corresponding output value from the "
        "function:\n\nout_specs is PartitionSpec('x',) which has length 1, but f(*args) has shape float32[], which has rank 0 "
        "(and 0 < 1)"},
    {"rank, Shardy", "rank-mismatch", "error: 'func.func' op arg 0 - sharding doesn't match tensor rank: 2 != 1"},
    {"axis twice", "duplicate-axis",
        "jax._src.named_sharding.DuplicateSpecError: A single NamedSharding specification can map every mesh axis to at most one "
        "positional dimension, but "
        "PartitionSpec('data', 'data') has duplicate entries for `data`"},
    {"axis twice, in a sharding", "duplicate-axis",
        "jax._src.named_sharding.DuplicateSpecError: A single NamedSharding spec specification can map every mesh axis to at "
        "most "
        "one positional dimension, but NamedSharding(mesh=Mesh('row': 2, 'col': 4), spec=PartitionSpec(('row', 'col'), 'row'), "
        "memory_kind=device) has duplicate entries for `row`"},
    {"axis twice, Shardy", "duplicate-axis", "error: duplicate axis ref: \"a\""},
    {"unknown axis", "unknown-axis",
        "ValueError: Resource axis: batch of PartitionSpec('batch', None) is not found in mesh: ('data', 'model')."},
    {"unknown axis, Shardy", "unknown-axis", "error: unknown axis name: \"c\""},
    {"unbound axis", "unbound-axis", "NameError: unbound axis name: data. The following axis names are available"},
    {"overlap", "axis-both-sharded-and-unreduced",
        "ValueError: partitions cannot overlap with unreduced axes passed to PartitionSpec. Got partitions: ('x', 'y') and "
        "unreduced axes: {'y'}"},
    {"replication", "replication-not-inferred",
        "ValueError: shard_map applied to the function 'f' was given out_specs which require replication which can't be "
        "statically inferred given the "
        "mesh:\n\nThe mesh given has shape (2, 2, 2) with corresponding axis names ('x', 'y', 'z').\n\nout_specs is "
        "PartitionSpec('x',) which implies that the "
        "corresponding output value is only varying across mesh axes {x} and not {y,z}, but it was inferred to be possibly "
        "varying over {x,y,z}"},
    {"carry", "carry-varies", "TypeError: Scan carry input and output got mismatched varying manual axes {} and {V:i}"},
    {"ambiguous", "ambiguous-sharding",
        "ShardingTypeError: Contracting dimensions are sharded and it is ambiguous how the output should be sharded. Please "
        "specify the output sharding via the `out_sharding` parameter."},
    {"operand shardings", "operand-shardings-differ",
        "jax._src.core.ShardingTypeError: add got incompatible shardings for broadcasting: PartitionSpec('data', None), "
        "PartitionSpec('model', None)."},
    {"concatenate", "operand-shardings-differ",
        "ShardingTypeError: All operands should have the same sharding. Got shardings P('x', 'y'), P('x', None)"},
    {"operand shapes", "operand-shapes-differ", "TypeError: mul got incompatible shapes for broadcasting: (8, 128), (16, 128)."},
    {"contracted shapes", "operand-shapes-differ",
        "TypeError: dot_general requires contracting dimensions to have the same shape, got (512,) and (128,)."},
    {"reshape of shards", "reshape-of-shards",
        "jax._src.core.ShardingTypeError: This reshape is not supported. Please specify the sharding of the output via the "
        "`out_sharding` argument of jax.lax.reshape. Got operand shape: (4, 6, 8), new sizes: (24, 8) and operand spec: "
        "P(None, 'y', 'x')"},
    {"gather", "indexing-of-shards",
        "jax.errors.ShardingTypeError: Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for the gather indexing "
        "as out sharding could not be resolved unambiguously (or would require collectives on inputs). Got "
        "operand=ShapedArray(float32[32000@model,512]), indices=ShapedArray(int32[8@data,128,1])"},
    {"slice", "sharded-dimension-resized",
        "NotImplementedError: slicing on sharded dims where out dim (3) is not divisible by mesh axes (4) with spec (('x', 'y')) "
        "is not implemented."},
    {"meshes of types", "jax-meshes-differ",
        "ValueError: Mesh for all inputs should be equal. Got one mesh: AbstractMesh('x': 2, 'y': 4) and another mesh: "
        "AbstractMesh('y': 4, 'x': 2)"},
    {"axis type", "axis-type",
        "ValueError: PartitionSpec passed to reshard cannot contain axis names that are of type Auto or Manual. Got "
        "PartitionSpec: P('data', None) with axis name: data of type: Auto."},
    {"argument's layout", "argument-in-other-layout",
        "ValueError: Sharding passed to jit does not match the sharding on the respective arg. Got arg sharding: "
        "NamedSharding(mesh=Mesh('x': 8), spec=P('x')),\njit sharding: NamedSharding(mesh=Mesh('x': 8), spec=P())"},
    {"argument's layout, jit first", "argument-in-other-layout",
        "ValueError: Sharding passed to jit does not match the sharding on the respective arg. Got jit sharding: "
        "NamedSharding(mesh=Mesh('rows': 4, 'cols': 2, axis_types=(Auto, Auto)), spec=PartitionSpec('cols', 'rows'), "
        "memory_kind=device),\narg sharding: NamedSharding(mesh=Mesh('rows': 4, 'cols': 2, axis_types=(Auto, Auto)), "
        "spec=PartitionSpec(('rows', 'cols'),), memory_kind=device) for arg type: bfloat16[16,32]"},
    {"argument's layout, compiled", "argument-in-other-layout",
        "ValueError: Compiled object called with input sharding(s) does not match the sharding(s) the computation was compiled "
        "with. Here are 2 mismatches out of 5:\nCompiled with: NamedSharding(mesh=Mesh('a': 2, 'b': 2), spec=P('a',)) and called "
        "with NamedSharding(mesh=Mesh('a': 2, 'b': 2), spec=P()). for arg state['w'] with shape float32[8,4]\nCompiled with: "
        "NamedSharding(mesh=Mesh('a': 2, 'b': 2), spec=P(None, 'b')) and called with NamedSharding(mesh=Mesh('a': 2, 'b': 2), "
        "spec=P('b',)). for arg batch with shape int32[4,16]"},
    {"argument's layout, required", "argument-in-other-layout",
        "ValueError: Computation was compiled for input shardings that disagree with the shardings of arguments passed to it. "
        "Here are the 1 mismatches:\nArgument params['emb'] with shape float32[512,64]:\n  Passed sharding: "
        "NamedSharding(mesh=Mesh('q': 8), spec=P(None, 'q'))\n  Required sharding: NamedSharding(mesh=Mesh('q': 8), "
        "spec=P('q', None))"},
    {"argument's layout, the engine's words", "argument-in-other-layout",
        "ValueError: Sharding passed to jit does not match the sharding on the respective arg. Got sharding: "
        "NamedSharding(mesh=Mesh('u': 2), spec=PartitionSpec(None, 'u')),\nand arg sharding: NamedSharding(mesh=Mesh('u': 2), "
        "spec=PartitionSpec('u',)) for arg number 3 with shape float32[4,4]"},
    {"argument's layout, no names", "argument-in-other-layout",
        "ValueError: Sharding passed to pjit does not match the sharding on the respective arg. Got pjit sharding: "
        "GSPMDSharding({devices=[4,1]<=[4]}),\narg sharding: SingleDeviceSharding(device=CpuDevice(id=0)) for arg w with shape: "
        "float32[8,8]"},
    {"argument's layout, another memory", "argument-in-other-layout",
        "ValueError: Sharding passed to jit does not match the sharding on the respective arg. Got jit sharding: "
        "NamedSharding(mesh=Mesh('m': 4), spec=P('m',), memory_kind=pinned_host),\narg sharding: NamedSharding(mesh=Mesh('m': "
        "4), "
        "spec=P('m',), memory_kind=device) for arg type: float32[8]"},
    {"argument's layout, another mesh", "argument-in-other-layout",
        "ValueError: Sharding passed to jit does not match the sharding on the respective arg. Got jit sharding: "
        "NamedSharding(mesh=Mesh('p': 8), spec=P('p',)),\narg sharding: NamedSharding(mesh=Mesh('g': 2, 'h': 4), spec=P('g', "
        "'h')) for arg type: float32[16,16]"},
    {"ambiguous, of two axes", "ambiguous-sharding",
        "jax.errors.ShardingTypeError: Contracting dimensions are sharded and it is ambiguous how the output should be sharded. "
        "Please specify the output sharding via the `out_sharding` parameter. Got lhs_contracting_spec=(('k', 'l'),) and "
        "rhs_contracting_spec=('k',)"},
    {"ambiguous, with types", "ambiguous-sharding",
        "jax._src.core.ShardingTypeError: dot_general operation with inputs: bf16[16@P,32@Q], bf16[32@Q,64] produces an "
        "ambiguously sharded result. Please specify the output sharding via the `out_sharding` parameter."},
    {"meshes, aval", "jax-meshes-differ",
        "ValueError: For primitive mul, context mesh AbstractMesh('ex': 2, 'ey': 4, axis_types=(Explicit, Explicit)) should "
        "match "
        "the aval mesh AbstractMesh('ez': 8, axis_types=(Explicit,)) for shape float32[6,4]. This error occurs at source: "
        "f.py:3"},
    {"meshes, shard_map", "jax-meshes-differ",
        "ValueError: The context mesh AbstractMesh('i': 4, 'j': 2, axis_types=(Auto, Auto)) should match the mesh passed to "
        "shard_map Mesh('i': 2, 'j': 4, axis_types=(Auto, Auto))"},
    {"carry of other axes", "carry-varies",
        "TypeError: scan body function carry input and carry output must have equal types (e.g. shapes and dtypes of arrays), "
        "but "
        "they differ: varying manual axes do not match. The input carry has type float32[4] and the output carry has type "
        "float32[4]{V:ring}"},
    {"types of other axes", "axis-type",
        "ValueError: PartitionSpec passed to einsum cannot contain axis names that are of type Auto or Manual. Got "
        "PartitionSpec: P('heads', None) with axis name: heads of type: Auto."},
    {"a table of other axes", "indexing-of-shards",
        "jax.errors.ShardingTypeError: Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for the gather indexing "
        "as out sharding could not be resolved unambiguously. Got operand=ShapedArray(float32[640@(rows,more),64]), "
        "indices=ShapedArray(int32[8@batch,16,1])"},
    {"tree of shardings", "shardings-tree",
        "ValueError: pjit in_shardings specification must be a tree prefix of the positional arguments tuple. In particular, "
        "pjit "
        "in_shardings must either be a Sharding, a PartitionSpec, or a tuple of length equal to the number of positional "
        "arguments. But pjit in_shardings is the wrong length: got a tuple or list of length 3 for an args tuple of length 2."},
    {"no rule of types", "no-type-rule", "NotImplementedError: sharding rule for cumlogsumexp is not implemented"},
    {"too few devices", "too-few-devices",
        "ValueError: compiling computation that requires 8 logical devices, but only 4 XLA devices are available "
        "(num_replicas=8)"},
    {"mapped sizes", "mapped-sizes-differ",
        "ValueError: pmap got inconsistent sizes for array axes to be mapped:\n  * one axis had size 8: axis 0 of argument batch "
        "of type float32[8,32];\n  * one axis had size 4: axis 0 of argument w of type float32[4,32]"},
    {"device_put elsewhere", "not-addressable",
        "ValueError: device_put's second argument must be a Device or a Sharding which represents addressable devices, but got "
        "NamedSharding(mesh=Mesh('data': 16), spec=PartitionSpec('data',))"},
    {"buffer", "buffer-size",
        "INVALID_ARGUMENT: Executable expected parameter 0 of size 1024 (f32[256]) but got buffer with incompatible size 2048 "
        "(f32[512])"},
    {"tiles", "tiles-and-devices-differ",
        "INVALID_ARGUMENT: Number of tile assignment dimensions (excluding subgroups) is different than the input rank. "
        "sharding={devices=[4,2]<=[8]}, input_shape=f32[16]"},
    {"no mesh", "no-mesh",
        "RuntimeError: with_sharding_constraint requires a non-empty mesh in context if you are passing `PartitionSpec`s"},
    {"no mesh, for reshard", "no-mesh",
        "ValueError: Using PartitionSpec when you are not under a mesh context is not allowed. Please pass a NamedSharding "
        "instance or "
        "enter into a mesh context via `jax.set_mesh`. Got PartitionSpec('x',)"},
    {"tuple in a tuple", "nested-tuple",
        "ValueError: A tuple inside PartitionSpec cannot contain a nested tuple. Got partitions: ('x', ('y', ('z',)))"},
    {"ppermute over axes in another order", "permuted-axes",
        "RuntimeError: Make sure that the axis_name passed to jax.lax.ppermute is in the same order as the axis_names of the "
        "mesh. Got "
        "('y', 'x')"},
    {"donation", "donation-not-usable",
        "UserWarning: Some donated buffers were not usable: float32[2,2,8,4]. See an explanation at"},
    {"MaxText", "unsharded-parameters", "AssertionError: Unsharded parameter percentage (12.30%) exceeds tolerance (2.00%)."},
    {"devices", "incompatible-devices",
        "ValueError: Received incompatible devices for jitted computation. Got argument args[0] of conv_general_dilated with "
        "shape float32[2,224,224,3] and device "
        "ids [0] on platform GPU and argument args[1] of conv_general_dilated with shape float32[14,14,3,1152] and device ids "
        "[0, 1] on platform GPU"},
    {"devices, 2022", "incompatible-devices",
        "ValueError: Devices of all `Array` inputs and outputs should be the same. Got array device ids [0, 1, 2, 3] on platform "
        "TPU and another array's device "
        "ids [4, 5, 6, 7] on platform TPU"},
    {"order", "device-order",
        "ValueError: Received incompatible devices for jitted computation. Got argument a of f with shape float32[8] and device "
        "ids [0, 1, 2, 3, 6, 7, 4, 5] on "
        "platform TPU and argument b of f with shape float32[8] and device ids [0, 1, 2, 3, 4, 5, 6, 7] on platform TPU"},
    {"pieces", "pieces-and-sharding-differ",
        "ValueError: Addressable devices and per-device arrays devices do not match. Sharding contains devices {0, 1} that are "
        "not present in per-device arrays."},
    {"mesh", "mesh-and-devices-differ", "ValueError: Number of devices 4 must equal the product of mesh_shape (4, 2)"},
    {"reshape", "mesh-and-devices-differ", "ValueError: cannot reshape array of size 4 into shape (4,2)"},
    {"other processes", "not-addressable",
        "RuntimeError: Fetching value for `jax.Array` that spans non-addressable (non process local) devices is not possible."},
    {"mismatch", "collective-mismatch",
        "RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: "
        "CollectiveFingerPrint(SequenceNumber=8, OpType=ALLREDUCE, "
        "TensorShape=[4], TensorDtypes=Float), but Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=8, "
        "OpType=ALLREDUCE, TensorShape=[1853171])."},
    {"timeout", "collective-timeout",
        "[rank1]:[E626 06:24:44.903881913 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=808, OpType=ALLREDUCE, "
        "NumelIn=9801523, NumelOut=9801523, Timeout(ms)=600000) ran for 600020 milliseconds before timing out."},
    {"rendezvous", "collective-timeout",
        "F external/xla/xla/service/rendezvous.cc:128] Termination timeout for rendezvous of 40 seconds exceeded. Expected 8 "
        "threads to join the rendezvous, but "
        "only 3 of them arrived on time."},
    {"barrier", "process-missing", "DEADLINE_EXCEEDED: Barrier timed out. Id: [Init]Wait_for_all_tasks_to_register::0"},
    {"NCCL", "nccl-error",
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, remote process exited or there was a "
        "network error, NCCL version 2.20.5\nncclRemoteError: A call failed possibly due to a network error or a remote process "
        "exiting prematurely."},
    {"HBM", "out-of-memory-compiled",
        "XlaRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used "
        "21.95G of 15.48G hbm. Exceeded hbm "
        "capacity by 6.47G."},
    {"XLA memory", "out-of-memory",
        "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes."},
    {"CUDA memory", "out-of-memory",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of "
        "which 1.13 GiB is free. Including "
        "non-PyTorch memory, this process has 78.01 GiB memory in use. Of the allocated memory 70.01 GiB is allocated by "
        "PyTorch, and 5.01 GiB is reserved by "
        "PyTorch but unallocated."},
    {"CUDA memory, old", "out-of-memory",
        "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 1; 15.78 GiB total capacity; 14.57 GiB already "
        "allocated; 4.44 MiB free; 14.70 GiB "
        "reserved in total by PyTorch)"},
    {"CUDA memory, private pools", "out-of-memory",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 5 has a total capacity of 79.11 GiB of "
        "which "
        "812.00 MiB is free. Process 91 has 2.00 GiB memory in use. Including non-PyTorch memory, this process has 76.30 GiB "
        "memory in use. 60.00 GiB allowed; Of the allocated memory 66.25 GiB is allocated by PyTorch, with 256.00 MiB allocated "
        "in "
        "private pools (e.g., CUDA Graphs), and 7.75 GiB is reserved by PyTorch but unallocated."},
    {"CUDA memory, another spelling", "out-of-memory",
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 48.00 MiB. GPU 2 has a total capacty of 23.65 GiB of "
        "which 31.00 MiB is free. Process 7 has 23.61 GiB memory in use. Of the allocated memory 22.75 GiB is allocated by "
        "PyTorch, and 96.00 KiB is reserved by PyTorch but unallocated."},
    {"CUDA memory, one tensor", "out-of-memory",
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 200.00 GiB. GPU 1 has a total capacity of 79.11 GiB "
        "of which 70.00 GiB is free. Of the allocated memory 6.00 GiB is allocated by PyTorch, and 300.00 GiB is reserved by "
        "PyTorch but unallocated."},
    {"HIP memory", "out-of-memory",
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 1.00 GiB. GPU 2 has a total capacity of 191.98 GiB of "
        "which "
        "600.00 MiB is free. Of the allocated memory 120.00 GiB is allocated by PyTorch, and 2.00 GiB is reserved by PyTorch but "
        "unallocated."},
    {"XPU memory", "out-of-memory",
        "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 96.00 MiB. GPU 0 has a total capacity of 47.98 GiB of "
        "which "
        "40.00 MiB is free. Of the allocated memory 46.00 GiB is allocated by PyTorch, and 64.00 MiB is reserved by PyTorch but "
        "unallocated. Please use `empty_cache` to release all unoccupied cached memory."},
    {"NPU memory", "out-of-memory",
        "RuntimeError: NPU out of memory. Tried to allocate 3.00 GiB (NPU 6; 60.97 GiB total capacity; 55.00 GiB already "
        "allocated; 55.00 GiB current active; 1.25 GiB free; 58.00 GiB reserved in total by PyTorch)"},
    {"HBM, one buffer", "out-of-memory",
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate "
        "6.00G. That was not possible. There are 1.50G free.; (1x0x0_HBM0)"},
    {"HBM, a program", "out-of-memory",
        "RESOURCE_EXHAUSTED: Error loading program: Attempting to reserve 12.25G at the bottom of memory. That was not possible. "
        "There are 10.75G free, 0B reserved, and 10.75G reservable.: while running replica 0"},
    {"HBM in pieces", "out-of-memory",
        "RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 2.00G. That was not possible. There are "
        "3.00G "
        "free.; (0x1x0_HBM0)"},
    {"HBM, larger than all", "out-of-memory",
        "RESOURCE_EXHAUSTED: Allocation (size=68719476736) would exceed memory (size=34359738368) :: #allocation3 [shape = "
        "'u8[68719476736]{0}', space=hbm, size = 0xffffffffffffffff, tag = 'output of xla_tpu_compile'"},
    {"vmem, one allocation", "out-of-memory",
        "RESOURCE_EXHAUSTED: Allocation (size=50331648) would exceed memory (size=16777216) :: #allocation2 [shape = "
        "'u8[50331648]{0}', space=vmem, size = 0x3000000, scoped, tag = 'scoped memory for kernel']"},
    {"HBM, buffers of the program", "out-of-memory-compiled",
        "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 20.00G of 16.00G hbm. "
        "Exceeded hbm capacity by 4.00G.\n\nTotal hbm usage >= 20.50G:\n    reserved        512.00M\n    program          "
        "18.00G\n  "
        "  arguments         2.00G\n\nOutput size 2.00G; shares 2.00G with arguments.\n\n  Largest program allocations in "
        "hbm:\n\n  1. Size: 6.00G\n     Operator: op_name=\"jit(step)/mlp/dot_general\" source_line=9\n     Shape: "
        "bf16[8,4096,98304]{2,1,0:T(8,128)(2,1)}\n     Unpadded size: 6.00G\n     Allocation type: HLO temp\n     "
        "==========================\n\n  2. Size: 4.00G\n     Operator: op_name=\"jit(step)/rope/mul\"\n     Shape: "
        "f32[8388608,8]{1,0:T(8,128)}\n     Unpadded size: 256.00M\n     Extra memory due to padding: 3.75G (16.0x expansion)\n  "
        "   ==========================\n"},
    {"HBM, many buffers", "out-of-memory-compiled",
        "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 24.00G of 16.00G hbm. Exceeded hbm capacity by 8.00G.\n"
        "Total hbm usage >= 24.00G:\n    program 24.00G\n    arguments 0B\n  Largest program allocations in hbm:\n"
        "  1. Size: 4.00G\n     Shape: f32[1024,1048576]\n  2. Size: 4.00G\n     Shape: f32[1024,1048576]\n  3. Size: 4.00G\n    "
        " "
        "Shape: f32[1024,1048576]\n  4. Size: 2.00G\n     Shape: f32[512,1048576]\n  5. Size: 2.00G\n     Shape: "
        "f32[512,1048576]\n"
        "  6. Size: 1.00G\n     Shape: f32[256,1048576]\n  7. Size: 512.00M\n     Shape: f32[128,1048576]\n  8. Size: 256.00M\n  "
        "   "
        "Shape: f32[64,1048576]\n"},
    {"HBM, arguments", "out-of-memory-compiled",
        "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 40.00G of 31.25G hbm. "
        "Exceeded hbm capacity by 8.75G.\n\nTotal hbm usage >= 40.50G:\n    reserved        512.00M\n    program           "
        "4.00G\n  "
        "  arguments        36.00G\n"},
    {"limit of memory", "memory-limit-not-reached",
        "W0000 hlo_rematerialization.cc:3005] Can't reduce memory use below 20.00GiB (21474836480 bytes) by rematerialization; "
        "only reduced to 50.00GiB (53687091200 bytes), down from 55.00GiB (59055800320 bytes) originally"},
    {"kernel", "host-out-of-memory",
        "[12345.678] Out of memory: Killed process 4242 (python3) total-vm:98765432kB, anon-rss:61234567kB, file-rss:0kB, "
        "shmem-rss:0kB"},
    {"Slurm", "host-out-of-memory",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=123.0. Some of the step tasks have been OOM Killed."},
    {"NumPy memory", "host-out-of-memory",
        "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 74.5 GiB for an array with shape (100000, 100000)"},
    {"signal", "killed",
        "torch.distributed.elastic.multiprocessing.api: failed (exitcode: -9) local_rank: 3 (pid: 42958) of binary: python"},
    {"shell", "killed", "Killed"},
    {"mat1 and mat2", "product-sizes-differ", "RuntimeError: mat1 and mat2 shapes cannot be multiplied (64x784 and 392x10)"},
    {"mixed", "mixed-tensors",
        "[rank1]: RuntimeError: aten.mm.default: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor "
        "before calling distributed "
        "operators!"},
    {"cross mesh", "meshes-differ",
        "NotImplementedError: aten._foreach_add_.List: DTensor does not support cross-mesh operation yet! Got meshes: "
        "DeviceMesh('cuda', [0], "
        "mesh_dim_names=('weight_parallel',)) DeviceMesh('cuda', [0, 1], mesh_dim_names=('expert_parallel',))"},
    {"placements", "placements-and-mesh-differ",
        "ValueError: `placements` must have the same length as `device_mesh.ndim`! Found placements length: 1, and "
        "device_mesh.ndim: 2."},
    {"no rule", "no-sharding-rule",
        "NotImplementedError: Operator aten.unfold.default does not have a sharding strategy registered."},
    {"flatten", "flattened-shard",
        "RuntimeError: Attempted to flatten sharded dimension 1, but only the leftmost dim of a Flatten can be sharded."},
    {"propagation", "placement-not-inferred",
        "RuntimeError: Sharding propagation failed for aten.view.default(Spec(f32[16, 100, 64](S(1))), [1600, 64]) on "
        "DeviceMesh((tp=4), 'cuda'))"},
    {"heads", "heads-and-ranks-differ",
        "AssertionError: num_attention_heads (12) must be divisible by tensor_model_parallel_size (8)"},
    {"heads, vLLM", "heads-and-ranks-differ",
        "ValueError: Total number of attention heads (40) must be divisible by tensor parallel size (3)."},
    {"heads, listed", "heads-and-ranks-differ",
        "AssertionError: Expects num_heads to be divisible by tensor parallel size, got 12 and 8"},
    {"heads, a multiple", "heads-and-ranks-differ",
        "ValueError: num_attention_heads (28) must be a multiple of tensor_model_parallel_size (8)."},
    {"groups, a multiple", "heads-and-ranks-differ",
        "ValueError: num_query_groups (6) must be a multiple of tensor_model_parallel_size (4)."},
    {"stored shape", "checkpoint-shapes-differ",
        "ValueError: Requested shape: (32256, 4096) is not compatible with the stored shape: (32000, 4096). Truncating/padding "
        "is "
        "disabled by setting of `strict=True`. When using standard Orbax APIs, this behavior can be modified by specifying "
        "`strict=False` in `ArrayRestoreArgs` for any array in which padding/truncation is desired."},
    {"stored shape of a scalar", "checkpoint-shapes-differ",
        "ValueError: Requested shape: () is not compatible with the stored shape: (16,). Truncating/padding is disabled"},
    {"loaded shape", "checkpoint-shapes-differ",
        "RuntimeError: Error(s) in loading state_dict for GPT:\n\tsize mismatch for blocks.3.mlp.up.weight: copying a param with "
        "shape torch.Size([11008, 4096]) from checkpoint, the shape in current model is torch.Size([2752, 4096])."},
    {"NCCL memory", "nccl-error",
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1691, unhandled cuda error, NCCL version "
        "2.19.3\nncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 'out of memory'"},
    {"NCCL, one line", "nccl-error", "RuntimeError: NCCL Error 2: unhandled system error (run with NCCL_DEBUG=INFO for details)"},
    {"NCCL memory, XLA", "nccl-error",
        "jax.errors.JaxRuntimeError: INTERNAL: external/xla/xla/backends/gpu/collectives/nccl_collectives.cc:241: NCCL operation "
        "ncclGroupEnd() failed: unhandled cuda error (run with NCCL_DEBUG=INFO for details). Last NCCL warning(error) log entry "
        "(may be unrelated) 'Cuda failure 2 'out of memory''."},
    {"NCCL, XLA", "nccl-error",
        "INTERNAL: NCCL operation ncclCommInitRankConfig(&comm, 2, id, 0, &config) failed: unhandled system error (run with "
        "NCCL_DEBUG=INFO for details). Last NCCL warning(error) log entry (may be unrelated) ''."},
    {"mesh axis", "mesh-axis-not-assigned",
        "NotImplementedError: Failed to find assignment for logical_axis_index 1 of size 8 with remaining assignable mesh [4, 4, "
        "0]. The size of each axis in your logical mesh must be equal to the product of some subset of the physical mesh axis "
        "sizes. E.g. logical mesh (4, 16) is compatible with physical mesh 4x4x4 since 4=4 and 16=4x4."},
    {"mesh of a list", "mesh-names-and-dims-differ",
        "ValueError: Mesh requires the ndim of its first argument (`devices`) to equal the length of its second argument "
        "(`axis_names`), but got devices.ndim == 1 and len(axis_names) == 3."},
    {"contraction", "contracted-shardings-differ",
        "jax._src.core.ShardingTypeError: dot_general requires contracting dimensions to have consistent sharding, got ('y',) "
        "and "
        "('x',)."},
    {"batch dimensions", "operand-shardings-differ",
        "jax._src.core.ShardingTypeError: dot_general requires lhs batch dimensions and rhs batch dimensions to have the "
        "consistent sharding, got ('y',) and ('x',)."},
    {"Megatron's ranks", "degrees-and-ranks-differ",
        "AssertionError: world size (24) is not divisible by total_model_size (total_model_size=16)"},
    {"Megatron's ranks, before arguments", "degrees-and-ranks-differ", "RuntimeError: world_size (12) is not divisible by 8"},
    {"Megatron's experts", "degrees-and-ranks-differ",
        "RuntimeError: world_size (64) is not divisible by expert_tensor_model_pipeline_parallel size (128)"},
    {"Megatron's batch", "batch-and-ranks-differ",
        "AssertionError: global batch size (100) is not divisible by micro batch size (6) times data parallel size (4)"},
    {"Megatron's two models", "degrees-and-ranks-differ",
        "AssertionError: world size (14) is not divisible by total_model_size (encoder_model_size=4 + decoder_model_size=8)"},
    {"Megatron's degrees", "degrees-and-ranks-differ",
        "RuntimeError: world_size (16) is not divisible by tensor_model_parallel_size (3) x pipeline_model_parallel_size (2) x "
        "context_parallel_size (1)"},
    {"Megatron's layers", "layers-and-stages-differ",
        "AssertionError: Number of layers should be divisible by the pipeline-model-parallel size"},
    {"DeepSpeed's batch", "batch-and-ranks-differ",
        "AssertionError: Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu * "
        "gradient_acc_step * world_size 256 != 4 * 8 * 16"},
    {"types of a product", "product-types-differ",
        "RuntimeError: mat1 and mat2 must have the same dtype, but got Float and BFloat16"},
    {"mesh and devices", "mesh-and-devices-differ",
        "ValueError: Number of devices 8 must equal the product of mesh_shape (4, 4)"},
    {"peak buffers", "out-of-memory",
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.\n"
        "Peak buffers:\n\tBuffer 1:\n\t\tSize: 8.00GiB\n\t\tOperator: op_name=\"jit(step)/dot_general\" source_line=30\n"
        "\t\tShape: bf16[64,8192,8192]\n"},
    {"peak buffers and arguments", "out-of-memory",
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 3221225472 "
        "bytes.\nBufferAssignment OOM Debugging.\nBufferAssignment stats:\n             parameter allocation:   60.00GiB\n       "
        "  "
        "     constant allocation:         8B\n        maybe_live_out allocation:   59.50GiB\n     preallocated temp allocation: "
        "   "
        "3.00GiB\nPeak buffers:\n\tBuffer 1:\n\t\tSize: 2.00GiB\n\t\tShape: f32[8192,65536]\n\t\t==========\n\n\tBuffer "
        "2:\n\t\tSize: 512.00MiB\n\t\tShape: f32[2048,65536]\n"},
    {"torchtitan's degrees", "degrees-and-ranks-differ",
        "AssertionError: Invalid parallel dims: dp_replicate(2) * dp_shard(5) * cp(1) * tp(4) * pp(1) != WORLD_SIZE(32)"},
    {"MaxText's degrees", "degrees-and-ranks-differ",
        "AssertionError: Number of devices per slice 64 does not match    the product of the ICI parallelism 128"},
    {"MaxText's slices", "degrees-and-ranks-differ",
        "AssertionError: Number of slices 2 does not match the product of the DCN parallelism 4"},
    {"MaxText's open degrees", "degrees-and-ranks-differ",
        "AssertionError: Found unspecified values (-1) for more than one ICI      parallelism axis. At most one axis can be "
        "unspecified."},
    {"Megatron's sequence", "sequence-and-ranks-differ",
        "AssertionError: seq-length should be a multiple of 2 * context-parallel-size if context-parallel-size > 1."},
    {"Megatron's number of experts", "experts-and-ranks-differ",
        "AssertionError: Number of experts should be a multiple of expert model parallel_size."},
    {"NCCL, a network card", "nccl-error",
        "node01:1234:5678 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.1.2.3<45678> with "
        "status=12 opcode=0 len=0 vendor err 129 (Recv)"},
    {"NCCL memory, a warning", "nccl-error", "node01:1234:5678 [0] include/alloc.h:48 NCCL WARN Cuda failure 2 'out of memory'"},
    {"two devices", "two-devices",
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"},
    {"world size", "mesh-and-ranks-differ",
        "RuntimeError: Mesh should not be bigger than default world size 4, but found 8 ranks!"},
    {"sizes", "sizes-differ",
        "RuntimeError: The size of tensor a (512) must match the size of tensor b (256) at non-singleton dimension 1"},
};

std::string messageOf(const char* row)
{
    for (const auto& [name, kind, message] : kMessages) {
        if (std::string_view(name) == row)
            return message;
    }
    return {};
}

/// All that is said of the first message.
std::string saidOf(const std::string& text, const ExplainContext& context = {})
{
    return explainedText(explainText(text, context), 80);
}

} // namespace

void TestExplainMessage::collectivesOfOneNumber()
{
    const auto timeout = [](int rank, const char* number, const char* op) {
        return fmt::format(
            "[rank{0}]:[E1204 10:00:00.1 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective operation "
            "timeout: WorkNCCL(SeqNum={1}, OpType={2}, NumelIn=1, NumelOut=8, Timeout(ms)=600000) ran for 600012 "
            "milliseconds\n",
            rank, number, op);
    };
    const std::string differ = saidOf(timeout(0, "1023", "ALLREDUCE") + timeout(5, "1023", "ALLGATHER"));
    for (const char* said :
        {"same number  rank 5: ALLGATHER", "same number  rank 0: ALLREDUCE", "Two collectives have number 1023"})
        QVERIFY2(differ.find(said) != std::string::npos, differ.c_str());
    for (const auto& [number, op] : {std::pair{"1024", "ALLGATHER"}, {"1023", "ALLREDUCE"}}) {
        const std::string agree = saidOf(timeout(0, "1023", "ALLREDUCE") + timeout(5, number, op));
        QVERIFY2(agree.find("Two collectives") == std::string::npos, agree.c_str());
    }
}

void TestExplainMessage::kinds_data()
{
    QTest::addColumn<QString>("kind");
    QTest::addColumn<QString>("message");
    for (const auto& [name, kind, message] : kMessages)
        QTest::newRow(name) << kind << message;
}

void TestExplainMessage::kinds()
{
    QFETCH(QString, kind);
    QFETCH(QString, message);
    const ExplainedText explained = explainText(message.toStdString());
    QCOMPARE(explained.messages.size(), std::size_t{1});
    const Explanation& found = explained.messages.front();
    QCOMPARE(tests::text(found.kind), kind);
    QVERIFY(!found.meaning.empty() && !found.quote.empty() && !found.title.empty());
    QVERIFY(!found.remedies.empty());
    for (const Remedy& remedy : found.remedies) {
        QVERIFY(!remedy.text.empty());
        QVERIFY2(remedy.code.empty() || remedy.code.ends_with('\n'), remedy.code.c_str());
    }
    m_seen.insert(found.kind);
}

void TestExplainMessage::everyKindIsTested()
{
    for (const KnownMessage& known : knownMessages())
        QVERIFY2(m_seen.contains(known.kind), known.kind.c_str());
}

void TestExplainMessage::says_data()
{
    QTest::addColumn<QString>("row");
    QTest::addColumn<QStringList>("words");
    QTest::newRow("sizes and padding") << "indivisible, jit"
                                       << QStringList{"10 = 4 x", "8 or 12", "jnp.pad(x, ((0, 2), (0, 0)))  # 10 -> 12",
                                              "NamedSharding(mesh, P(None, None))", "['x']", "asked: P('data', None)"};
    QTest::newRow("the axis that goes") << "indivisible, shard_shape"
                                        << QStringList{
                                               "NamedSharding(mesh, P('x', None))", "works: P('x', None)", "mesh   x=4,y=2"};
    QTest::newRow("explicit mode") << "indivisible, type" << QStringList{"50432", "P(None, None)"};
    QTest::newRow("shard_map's own words") << "indivisible, shard_map"
                                           << QStringList{"function  f", "mesh      i=4,j=2", "4 equal pieces"};
    QTest::newRow("the other dimension of a placed array")
        << "indivisible, jit, two dimensions"
        << QStringList{"7 = 3 x 2 + 1", "5 = 2 x 2 + 1", "jnp.pad(x, ((0, 2), (0, 1)))  # 7 -> 9, 5 -> 6", "P(None, None)"};
    QTest::newRow("no size above it") << "indivisible, jit, as long as can be"
                                      << QStringList{"Make dimension 0 of size 9223372036854775806."};
    QTest::newRow("both dimensions of an argument")
        << "indivisible, shard_map, two dimensions"
        << QStringList{"argument  args[0]", "6 = 4 x 1 + 2", "9 = 4 x 2 + 1",
               "h = jnp.pad(h, ((0, 2), (0, 3), (0, 0)))  # 6 -> 8, 9 -> 12", "in_specs=P('d', None)"};
    QTest::newRow("all arguments") << "indivisible, shard_map, bullets"
                                   << QStringList{"args[0]['w']  6x5, dimension 0 in 4 pieces: 6 = 4 x 1 + 2, dimension 1 in 2",
                                          "args[2] 10, dimension 0 in 4 pieces",
                                          "params['w'] = jnp.pad( params['w'], ((0, 2), (0, 1)))",
                                          "rest[1] = jnp.pad(rest[1], ((0, 2),))  # 10 -> 12", "P(None, None)  # args[0]['w']"};
    QTest::newRow("the engine's words") << "indivisible, shard_map, the engine's words"
                                        << QStringList{"20 = 8 x 2 + 4", "7 = 4 x 1 + 3",
                                               "dimension 0 of size 16 or 24 and dimension 1 of size 4 or 8."};
    QTest::newRow("a removed name") << "removed, JAX's words"
                                    << QStringList{
                                           "name  jax.sharding.PositionalSharding", "jax.NamedSharding(mesh, jax.P('x', None))"};
    QTest::newRow("a removed module") << "removed, module"
                                      << QStringList{"name  jax.experimental.maps", "in_specs=jax.P('data')"};
    QTest::newRow("a moved function") << "moved, warning" << QStringList{"name  jax.experimental.shard_map", "check_vma=False"};
    QTest::newRow("a renamed argument") << "renamed, check_rep" << QStringList{"argument  check_rep", "check_vma=False"};
    QTest::newRow("a default that changes") << "axis types" << QStringList{"AxisType.Auto,) * 2", "--mode explicit"};
    QTest::newRow("labels") << "rank" << QStringList{"The spec has 2 entries", "1 dimension.", "NamedSharding(mesh, P('x',))"};
    QTest::newRow("scalar") << "rank, shard_map" << QStringList{"out_specs=P()"};
    QTest::newRow("one place") << "axis twice" << QStringList{"spec = P('data', None)"};
    QTest::newRow("one place in a sharding")
        << "axis twice, in a sharding" << QStringList{"spec = P(('row', 'col'), None)", "2. Or split the second"};
    QTest::newRow("nearest axis") << "unknown axis"
                                  << QStringList{"axis        batch", "mesh axes   data, model",
                                         "make_mesh((*mesh.axis_sizes, 1), ('data', 'model', 'batch'))"};
    QTest::newRow("psum") << "replication" << QStringList{"psum(y, ('y', 'z'))", "out_specs=P(('y', 'z'))", "x=2,y=2,z=2"};
    QTest::newRow("where they are") << "devices" << QStringList{"args[0]", "■  ·", "Place args[0] on the mesh of 2 devices"};
    QTest::newRow("both sets") << "devices, 2022" << QStringList{"devices 0, 1, 2, 3 of platform TPU", "devices 4, 5, 6, 7"};
    QTest::newRow("positions") << "order"
                               << QStringList{"   0   1   2   3   6   7   4   5", "                   ^   ^   ^   ^",
                                      "make_mesh((8,), ('data',))"};
    QTest::newRow("what two ranks call") << "mismatch"
                                         << QStringList{"rank 0  ALLREDUCE of [4], number 8", "rank 1  ALLREDUCE of [1853171]"};
    QTest::newRow("watchdog") << "timeout" << QStringList{"ALLREDUCE, number 808", "9.80 M", "10 min 0 s", "rank 1"};
    QTest::newRow("arrived") << "rendezvous" << QStringList{"3 of 8 devices"};
    QTest::newRow("how much too much") << "HBM"
                                       << QStringList{
                                              "needed       21.9 GiB", "there is     15.5 GiB", "1.42 times", "2 ways more"};
    QTest::newRow("bytes") << "XLA memory" << QStringList{"16.0 GiB"};
    QTest::newRow("fragments") << "CUDA memory"
                               << QStringList{"asked for         2.00 GiB", "reserved, unused  5.01 GiB", "fragmented",
                                      "expandable_segments"};
    QTest::newRow("old numbers") << "CUDA memory, old" << QStringList{"GPU 1", "15.8 GiB", "4.44 MiB", "133 MiB"};
    QTest::newRow("what stands between") << "CUDA memory, private pools"
                                         << QStringList{"in tensors        66.2 GiB", "in private pools  256 MiB",
                                                "reserved, unused  7.75 GiB", "fragmented", "GPU 5"};
    QTest::newRow("the capacity's other spelling") << "CUDA memory, another spelling"
                                                   << QStringList{"memory            23.6 GiB", "free              31.0 MiB",
                                                          "in tensors        22.8 GiB", "reserved, unused  96.0 KiB"};
    QTest::newRow("the largest of peak buffers")
        << "peak buffers" << QStringList{"1. Cut the largest buffer, bf16[64,8192,8192] of jit(step)/dot_general"};
    QTest::newRow("arguments of a program") << "peak buffers and arguments"
                                            << QStringList{"arguments    60.0 GiB", "temporaries  3.00 GiB",
                                                   "buffer 2     512 MiB: f32[2048,65536]",
                                                   "1. Shard parameters and optimiser states",
                                                   "2. Cut the largest buffer, f32[8192,65536]"};
    QTest::newRow("larger than the GPU") << "CUDA memory, one tensor"
                                         << QStringList{
                                                "2.53 times the whole memory of the GPU", "can never fit", "at least 3 devices"};
    QTest::newRow("another process on an AMD GPU")
        << "HIP memory" << QStringList{"About 69.4 GiB", "PYTORCH_HIP_ALLOC_CONF", "rocm-smi"};
    QTest::newRow("an Intel GPU") << "XPU memory" << QStringList{"asked for         96.0 MiB", "reserved, unused  64.0 MiB"};
    QTest::newRow("an NPU") << "NPU memory"
                            << QStringList{
                                   "NPU 6", "free              1.25 GiB", "reserved, unused  3.00 GiB", "in tensors        55.0"};
    QTest::newRow("one buffer against the free rest")
        << "HBM, one buffer"
        << QStringList{"asked for  6.00 GiB", "free       1.50 GiB", "4.50 GiB more must be free", "cut 4 ways more"};
    QTest::newRow("room for a program") << "HBM, a program"
                                        << QStringList{"1.50 GiB more must be free for the buffers of the program."};
    QTest::newRow("free memory in pieces") << "HBM in pieces" << QStringList{"2.00 GiB does not fit although 3.00 GiB are free"};
    QTest::newRow("larger than the device") << "HBM, larger than all"
                                            << QStringList{"2.00 times the whole memory of the device (32.0 GiB)"};
    QTest::newRow("a kernel's blocks") << "vmem, one allocation" << QStringList{"smaller blocks in the kernel"};
    QTest::newRow("all listed buffers")
        << "HBM, buffers of the program"
        << QStringList{"buffer 1     6.00 GiB: bf16[8,4096,98304], jit(step)/mlp/dot_general",
               "buffer 2     4.00 GiB (256 MiB without padding): f32[8388608,8], jit(step)/rope/mul",
               "1. Cut the largest buffer, bf16[8,4096,98304] of jit(step)/mlp/dot_general, 4 ways more", "frees up to 4.50 GiB",
               "P('data', None, 'model')", "f32[8388608,8] take 4.00 GiB instead of 256 MiB",
               "Sharding the parameters and optimiser states further is not enough"};
    QTest::newRow("the first of many buffers")
        << "HBM, many buffers"
        << QStringList{"buffer 6     1.00 GiB: f32[256,1048576]", "more         2 more of at most 512 MiB each",
               "Cut all listed buffers, 2 ways more where they are made. This frees up to 8.88 GiB, and 8.00 GiB must go"};
    QTest::newRow("parameters first") << "HBM, arguments"
                                      << QStringList{
                                             "1. It needs 1.28 times what there is", "Recomputing activations is not enough"};
    QTest::newRow("times the limit") << "limit of memory"
                                     << QStringList{"limit     20.0 GiB", "4 ways more", "2.50 times its limit"};
    QTest::newRow("killed process") << "kernel" << QStringList{"4242 (python3)", "58.4 GiB"};
    QTest::newRow("a factor of 2") << "mat1 and mat2" << QStringList{"64 x 784", "392 x 10", "One is 2 times the other"};
    QTest::newRow("op") << "mixed" << QStringList{"aten.mm.default", "DTensor.from_local"};
    QTest::newRow("meshes") << "cross mesh" << QStringList{"aten._foreach_add_.List", "DeviceMesh('cuda', [0],"};
    QTest::newRow("one for each mesh dimension") << "placements" << QStringList{"placements       1", "mesh dimensions  2"};
    QTest::newRow("both specs") << "operand shardings"
                                << QStringList{"op         add", "P('model', None)", "reshard(b, P('data', None))"};
    QTest::newRow("a shard beside a whole") << "operand shapes" << QStringList{"8x128", "16x128", "2 times the other", "axis=0"};
    QTest::newRow("the layout that is wanted")
        << "argument's layout, jit first"
        << QStringList{"device_put(x, NamedSharding(mesh, P('cols', 'rows')))",
               "in_shardings=NamedSharding(mesh, P(('rows', 'cols'),)", "mesh      rows=4,cols=2", "bf16[16,32]"};
    QTest::newRow("the layout that is wanted, arg first")
        << "argument's layout" << QStringList{"device_put(x, NamedSharding(mesh, P()))", "has     P('x',)", "wanted  P()"};
    QTest::newRow("two arguments") << "argument's layout, compiled"
                                   << QStringList{"state['w'] = jax.device_put( state['w'], NamedSharding(mesh, P('a',)))",
                                          "batch = jax.device_put(batch, NamedSharding(mesh, P(None, 'b')))",
                                          "state['w'] has     P()", "batch has          P('b',)"};
    QTest::newRow("the layout that is required")
        << "argument's layout, required"
        << QStringList{"params['emb'] = jax.device_put( params['emb'], NamedSharding(mesh, P('q', None)))", "128 KiB"};
    QTest::newRow("an argument's number") << "argument's layout, the engine's words"
                                          << QStringList{
                                                 "args[3]  f32[4,4]", "x = jax.device_put(x, NamedSharding(mesh, P(None, 'u')))"};
    QTest::newRow("shardings without names")
        << "argument's layout, no names" << QStringList{"x = jax.device_put(x, in_shardings[0])", "GSPMDSharding"};
    QTest::newRow("layouts that read the same")
        << "argument's layout, another memory"
        << QStringList{"Both layouts have the same axes and entries", "device_put(x, in_shardings[0])"};
    QTest::newRow("two meshes of an argument")
        << "argument's layout, another mesh"
        << QStringList{"on the function's mesh", "p=8", "g=2,h=4", "NamedSharding(mesh, P('p',))"};
    QTest::newRow("contracted axes") << "ambiguous, of two axes"
                                     << QStringList{"(('k', 'l'),)", "out_sharding=P())", "or P('k', None)"};
    QTest::newRow("axes of types") << "ambiguous, with types" << QStringList{"out_sharding=P())", "or P('P', None)"};
    QTest::newRow("the mesh in use") << "meshes, aval"
                                     << QStringList{"Mesh('ez': 8", "Their axes have other names",
                                            "jax.make_mesh((2, 4), ('ex', 'ey'), axis_types=t)", "NamedSharding(mesh, P('ex')))"};
    QTest::newRow("sizes of two meshes") << "meshes, shard_map"
                                         << QStringList{"mesh of shard_map",
                                                "'i' has size 4 in one and 2 in the other, 'j' has size 2",
                                                "make_mesh((4, 2), ('i', 'j'))", "NamedSharding(mesh, P()))"};
    QTest::newRow("order of two meshes") << "meshes of types"
                                         << QStringList{"same axes in another order", "make_mesh((2, 4), ('x', 'y'))"};
    QTest::newRow("the axis of a carry") << "carry of other axes" << QStringList{"pcast(init, 'ring', to='varying')"};
    QTest::newRow("the axis of a type") << "types of other axes"
                                        << QStringList{"NamedSharding(mesh, P('heads'))", "(8,), ('heads',), axis_types"};
    QTest::newRow("axes of a table") << "a table of other axes"
                                     << QStringList{"out_sharding=P('batch', None, None)", "reshard(table, P(None, 'rows'))"};
    QTest::newRow("axes of a reshape") << "reshape of shards" << QStringList{"out_sharding=P('y', None)"};
    QTest::newRow("axes of a contraction") << "contraction" << QStringList{"reshard(a, P('y', None))"};
    QTest::newRow("sizes of a reshape") << "reshape of shards" << QStringList{"4x6x8", "24x8", "out_sharding="};
    QTest::newRow("a table's rows") << "gather" << QStringList{"32000@model", ".at[ids].get(out_sharding="};
    QTest::newRow("sizes that divide") << "slice" << QStringList{"3 in 4 pieces", "slicing"};
    QTest::newRow("entries") << "tree of shardings" << QStringList{"3 for 2 arguments"};
    QTest::newRow("devices needed") << "too few devices" << QStringList{"8 needed, 4 there", "device_count=8"};
    QTest::newRow("op and placements") << "propagation" << QStringList{"aten.view.default", "S(1)"};
    QTest::newRow("sizes that fit 12 heads") << "heads" << QStringList{"12 over 8 ranks", "1, 2, 3, 4, 6, 12"};
    QTest::newRow("sizes that fit 40 heads") << "heads, vLLM" << QStringList{"40 over 3 ranks", "1, 2, 4, 5, 8, 10, 20, 40"};
    QTest::newRow("got .. and ..") << "heads, listed" << QStringList{"12 over 8 ranks"};
    QTest::newRow("sizes that fit 28 heads") << "heads, a multiple" << QStringList{"28 over 8 ranks", "1, 2, 4, 7, 14, 28"};
    QTest::newRow("sizes that fit 6 groups")
        << "groups, a multiple" << QStringList{"6 over 4 ranks", "1, 2, 3, 6", "--num-query-groups"};
    QTest::newRow("a padded vocabulary") << "stored shape"
                                         << QStringList{"in the program     32256x4096",
                                                "Dimension 0 is 32256 in the program and 32000", "strict=False"};
    QTest::newRow("a scalar of each device")
        << "stored shape of a scalar" << QStringList{"under pmap", "0 dimensions and the other 1"};
    QTest::newRow("a rank's shard") << "loaded shape"
                                    << QStringList{"blocks.3.mlp.up.weight", "in the checkpoint  11008x4096", "a factor of 4"};
    QTest::newRow("NCCL's own memory") << "NCCL memory" << QStringList{"NCCL_BUFFSIZE"};
    QTest::newRow("ranks") << "world size" << QStringList{"--nproc-per-node 8"};
    QTest::newRow("memory beside JAX's") << "NCCL memory, XLA"
                                         << QStringList{"XLA_PYTHON_CLIENT_MEM_FRACTION", "operation  ncclGroupEnd()"};
    QTest::newRow("what the machine's axes make")
        << "mesh axis" << QStringList{"number 1 (from 0), of size 8", "4x4x0", "they make 1, 4, 16"};
    QTest::newRow("a list of devices") << "mesh of a list" << QStringList{"1 dimension", "names    3", "reshaped"};
    QTest::newRow("contracting specs") << "contraction" << QStringList{"dot_general", "P('y',)", "P('x',)"};
    QTest::newRow("multiples of 16") << "Megatron's ranks" << QStringList{"16 or 32", "a divisor of 24, such as 8"};
    QTest::newRow("multiples of 8") << "Megatron's ranks, before arguments"
                                    << QStringList{"8 or 16", "a divisor of 12, such as 4"};
    QTest::newRow("the sum of two models") << "Megatron's two models" << QStringList{"Start a multiple of 12 ranks: 12 or 24"};
    QTest::newRow("the product of degrees") << "Megatron's degrees" << QStringList{"Start a multiple of 6 ranks: 12 or 18"};
    QTest::newRow("layers of stages") << "Megatron's layers" << QStringList{"--decoder-first-pipeline-num-layers"};
    QTest::newRow("microbatches that are left")
        << "DeepSpeed's batch" << QStringList{"4 x 8 x 16", "\"gradient_accumulation_steps\": 4"};
    QTest::newRow("types") << "types of a product" << QStringList{"types  Float and BFloat16", "torch.autocast"};
    QTest::newRow("sizes that make the devices")
        << "mesh and devices" << QStringList{"8 there, 16 asked for", "device_count=16", "mesh_shape = (2, 4)"};
    QTest::newRow("the largest buffer") << "peak buffers" << QStringList{"8.00 GiB: bf16[64,8192,8192]", "jit(step)/dot_general"};
    QTest::newRow("ranks of experts") << "Megatron's experts" << QStringList{"128", "Start a multiple of 128 ranks: 128"};
    QTest::newRow("batches that go") << "Megatron's batch" << QStringList{"6 x 4 = 24", "96 or 120", "microbatches of 1, 5, 25"};
    QTest::newRow("devices of a slice") << "MaxText's degrees"
                                        << QStringList{"They make 128, and there are 64", "ici_fsdp_parallelism=-1"};
    QTest::newRow("slices") << "MaxText's slices" << QStringList{"They make 4, and there are 2", "dcn_data_parallelism=-1"};
    QTest::newRow("NCCL's own memory, a warning") << "NCCL memory, a warning" << QStringList{"NCCL_BUFFSIZE"};
    QTest::newRow("shards that are left") << "torchtitan's degrees"
                                          << QStringList{"make 40, and 32 were started", "which are 4", "NGPU=40"};
}

void TestExplainMessage::says()
{
    QFETCH(QString, row);
    QFETCH(QStringList, words);
    const QString said = tests::text(saidOf(messageOf(row.toUtf8().constData())));
    for (const QString& word : words)
        QVERIFY2(said.contains(word) || said.simplified().contains(word.simplified()), qPrintable(word + "\n" + said));
}

void TestExplainMessage::omits_data()
{
    QTest::addColumn<QString>("row");
    QTest::addColumn<QStringList>("words");
    QTest::newRow("a GPU's settings for a TPU")
        << "HBM, one buffer" << QStringList{"nvidia-smi", "MEM_FRACTION", "times what there is"};
    QTest::newRow("a TPU's program") << "HBM, a program" << QStringList{"nvidia-smi", "MEM_FRACTION", "device_put(x"};
    QTest::newRow("other processes") << "CUDA memory, private pools" << QStringList{"outside PyTorch"};
    QTest::newRow("fragments of too large a tensor")
        << "CUDA memory, one tensor" << QStringList{"fragmented", "expandable_segments", "nvidia-smi"};
    QTest::newRow("NVIDIA's words") << "HIP memory" << QStringList{"CUDA_ALLOC", "NCCL and the CUDA", "nvidia-smi"};
    QTest::newRow("memory outside that is small") << "XPU memory" << QStringList{"outside PyTorch"};
    QTest::newRow("shards of a kernel") << "vmem, one allocation" << QStringList{"FSDP", "devices"};
    for (const char* row : {"argument's layout, jit first", "argument's layout, compiled", "argument's layout, required",
             "argument's layout, another mesh", "ambiguous, of two axes", "meshes, aval", "meshes, shard_map",
             "carry of other axes", "types of other axes", "a table of other axes", "reshape of shards", "contraction",
             "replication", "carry"})
        QTest::addRow("examples of axes: %s", row) << row << QStringList{"'data'", "'model'"};
    QTest::newRow("the layout that the array has")
        << "argument's layout" << QStringList{"device_put(x, NamedSharding(mesh, P('x'"};
    QTest::newRow("a layout that reads the same")
        << "argument's layout, another memory" << QStringList{"device_put(x, NamedSharding"};
    QTest::newRow("no sharding that is not named") << "argument's layout, no names" << QStringList{"'data'", "P("};
    QTest::newRow("lines that are there") << "indivisible, shard_map, the engine's words" << QStringList{"Paste"};
    QTest::newRow("groups of heads") << "heads, a multiple" << QStringList{"--num-query-groups"};
    QTest::newRow("advice that is not enough") << "HBM, buffers of the program" << QStringList{"(FSDP"};
    QTest::newRow("activations that are not enough") << "HBM, arguments" << QStringList{"jax.checkpoint"};
}

void TestExplainMessage::omits()
{
    QFETCH(QString, row);
    QFETCH(QStringList, words);
    const std::string message = messageOf(row.toUtf8().constData());
    QVERIFY(!message.empty());
    std::string said; // without the quotation
    for (const std::string& line : split(saidOf(message), '\n'))
        said += line.starts_with("  > ") ? "" : line + " ";
    const QString text = tests::text(said).simplified();
    for (const QString& word : words)
        QVERIFY2(!text.contains(word), qPrintable(word + "\n" + text));
}

void TestExplainMessage::rematerializationPath_data()
{
    QTest::addColumn<QString>("from");
    QTest::addColumn<QString>("to");
    QTest::addColumn<QString>("array");
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<QStringList>("steps"); // collective, axes, layout
    // The case that XLA's issue 15207 is about: 16 KiB on 8 devices, 2 KiB a device and step.
    QTest::newRow("two all-to-alls") << "{devices=[2,1,4]<=[4,2]T(1,0)}"
                                     << "{devices=[1,8,1]<=[8]}"
                                     << "f32[16,16,16]{2,1,0}"
                                     << "x=4,y=2"
                                     << QStringList{"all_to_all P('y', 'x', None)", "all_to_all P(None, ('x', 'y'), None)"};
    QTest::newRow("the same with lists of devices")
        << "{devices=[2,1,4]0,2,4,6,1,3,5,7}"
        << "{devices=[1,8,1]0,1,2,3,4,5,6,7}"
        << "f32[16,16,16]{2,1,0}"
        << "x=4,y=2" << QStringList{"all_to_all P('y', 'x', None)", "all_to_all P(None, ('x', 'y'), None)"};
    QTest::newRow("axes cut as both need") << "{devices=[256,1]<=[256]}"
                                           << "{devices=[1,64,4]<=[256] last_tile_dim_replicate}"
                                           << "bf16[1024,4096]{1,0}"
                                           << "x=64,y=4"
                                           << QStringList{"all_to_all P(None, ('x', 'y'))", "all_gather P(None, 'x')"};
    QTest::newRow("replicated") << "{replicated}"
                                << "{devices=[4,1]<=[4]}"
                                << "f32[8,8]{1,0}"
                                << "x=4" << QStringList{"all_slice P('x', None)"};
}

void TestExplainMessage::rematerializationPath()
{
    QFETCH(QString, from);
    QFETCH(QString, to);
    QFETCH(QString, array);
    QFETCH(QString, mesh);
    QFETCH(QStringList, steps);
    const QString message = "[spmd] Involuntary full rematerialization. The compiler was not able to go from sharding " + from
        + " to " + to + " without doing a full rematerialization of the tensor for HLO operation: %copy.1 = " + array
        + " copy(%add), sharding=" + to
        + ", metadata={op_name=\"jit(f)/add\" source_file=\"/a/model.py\" source_line=17}. You probably";
    const ExplainedText explained = explainText(message.toStdString());
    QCOMPARE(explained.messages.size(), std::size_t{1});
    const Explanation& found = explained.messages.front();
    QVERIFY(found.change.has_value());
    QCOMPARE(tests::text(found.change->layouts.mesh.text()), mesh);
    QStringList taken;
    for (const ReshardStep& step : found.change->cheapest.steps)
        taken << tests::text(std::string(opName(step.kind)) + " " + fullLayoutText(step.result, found.change->layouts.mesh));
    QCOMPARE(taken, steps);
    QCOMPARE(found.pictures.empty(), found.change->layouts.mesh.deviceCount() > 256);
    QVERIFY(found.change->cheapest.cost <= found.change->gather.cost);
    QVERIFY(saidOf(message.toStdString()).find("model.py:17") != std::string::npos);
}

/// "Or" stands between two ways out.
void TestExplainMessage::firstWayOut()
{
    for (const auto& [name, kind, message] : kMessages) {
        for (const char* mesh : {"", "a=2,b=4", "p=16"}) {
            ExplainContext context;
            if (*mesh != 0)
                context.mesh = tests::meshOf(mesh);
            for (const Explanation& found : explainText(message, context).messages)
                QVERIFY2(!found.remedies.front().text.starts_with("Or"), name);
        }
    }
}

void TestExplainMessage::givenMesh_data()
{
    QTest::addColumn<QString>("row");
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<QString>("said");
    QTest::newRow("other number of devices") << "rematerialization, 2024"
                                             << "a=32"
                                             << "a=32 has 32 devices, and the message 8: it is not used";
    QTest::newRow("tiles that it does not have") << "rematerialization, 2022"
                                                 << "a=2,b=3"
                                                 << "a=2,b=3 has 6 devices, and the message 4";
    QTest::newRow("axes that are cut") << "rematerialization, 2024"
                                       << "p=2,q=4"
                                       << "On a mesh x=4,y=2 of the same devices they have names";
    QTest::newRow("a placed array") << "indivisible, shard_shape"
                                    << "a=16"
                                    << "given mesh  a=16 has 16 devices, and the message 8";
    QTest::newRow("shard_map") << "indivisible, shard_map"
                               << "a=1"
                               << "a=1 has 1 device, and the message 8";
    QTest::newRow("axes for examples") << "no mesh"
                                       << "u=2,v=8"
                                       << "jax.make_mesh((2, 8), ('u', 'v'))";
    QTest::newRow("a mesh for shard_map's words") << "indivisible, shard_map, the engine's words"
                                                  << "f=2,g=4,h=4"
                                                  << "in_specs=P('f', None)";
}

void TestExplainMessage::givenMesh()
{
    QFETCH(QString, row);
    QFETCH(QString, mesh);
    QFETCH(QString, said);
    ExplainContext context;
    context.mesh = tests::meshOf(mesh.toStdString());
    const QString text = tests::text(saidOf(messageOf(row.toUtf8().constData()), context)).simplified();
    QVERIFY2(text.contains(said.simplified()), qPrintable(text));
}

void TestExplainMessage::meshIsTaken()
{
    const std::string message = messageOf("rematerialization, 2024");
    ExplainContext context;
    context.mesh = tests::meshOf("data=4,model=2");
    context.shape = Shape{16, 16, 16};
    const std::string said = saidOf(message, context);
    QVERIFY2(said.find("P('model', 'data', None)") != std::string::npos, said.c_str());
    QVERIFY2(said.find("2.00 KiB") != std::string::npos, said.c_str());
    // A mesh that does not have these tiles is not used.
    context.mesh = tests::meshOf("data=3");
    QVERIFY(saidOf(message, context).find("x=4,y=2") != std::string::npos);
    // Without a shape the parts are told.
    QVERIFY(saidOf(message).find("1/8 of the array") != std::string::npos);
}

void TestExplainMessage::logs()
{
    const std::string log = "2024-06-01T19:39:55.123Z starting\n"
                            "\033[31m[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\033[0m\r\n"
                            "nothing of note\n"
                            "{\"time\": \"x\", \"msg\": \"ValueError: Resource axis: x of PartitionSpec('x',) is not found in "
                            "mesh: ('z',).\\nmore\"}\n"
                            "[1,3]<stderr>:RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)\n"
                            "the process was killed by me\n"
                            "Killed\n";
    const ExplainedText explained = explainText(log);
    QCOMPARE(explained.lineCount, std::size_t{7});
    QCOMPARE(explained.messages.size(), std::size_t{4});
    const std::vector<std::pair<std::string, std::size_t>> expected
        = {{"out-of-memory", 2}, {"unknown-axis", 4}, {"product-sizes-differ", 5}, {"killed", 7}};
    for (std::size_t i = 0; i < expected.size(); ++i) {
        QCOMPARE(explained.messages[i].kind, expected[i].first);
        QCOMPARE(explained.messages[i].lines.front(), expected[i].second);
    }
    QCOMPARE(tests::text(explained.messages[0].quote), "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.");
    QVERIFY(explainedText(explained, 80).find("line 5: PyTorch: ") != std::string::npos);
}

void TestExplainMessage::neighboursStayApart_data()
{
    QTest::addColumn<QString>("log");
    QTest::addColumn<QStringList>("messages"); ///< line, source and kind
    const QString torch = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n";
    const QString more = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB.\n";
    const QString compiled
        = "XlaRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space "
          "hbm. Used 17.82G of 15.75G hbm. Exceeded hbm capacity by 2.07G.\n";
    QTest::newRow("two programs") << torch + compiled << QStringList{"1 PyTorch out-of-memory", "2 XLA out-of-memory-compiled"};
    QTest::newRow("two programs, the other way round")
        << compiled + torch << QStringList{"1 XLA out-of-memory-compiled", "2 PyTorch out-of-memory"};
    QTest::newRow("two of one program") << torch + more << QStringList{"1 PyTorch out-of-memory", "2 PyTorch out-of-memory"};
    QTest::newRow("one of two lines") << QString(compiled).replace(" Ran out", "\nRan out")
                                      << QStringList{"2 XLA out-of-memory-compiled"};
}

/// A message that follows another at once is not taken for its continuation.
void TestExplainMessage::neighboursStayApart()
{
    QFETCH(QString, log);
    QFETCH(QStringList, messages);
    QStringList found;
    for (const Explanation& message : explainText(log.toStdString()).messages)
        found << QString("%1 %2 %3").arg(message.lines.front()).arg(tests::text(message.source), tests::text(message.kind));
    QCOMPARE(found, messages);
}

void TestExplainMessage::wrappedLines_data()
{
    QTest::addColumn<int>("width");
    for (const int width : {20, 37, 60, 80, 132})
        QTest::addRow("%d columns", width) << width;
}

/// A terminal breaks lines wherever they are too long, inside words too.
void TestExplainMessage::wrappedLines()
{
    QFETCH(int, width);
    for (const auto& [name, kind, message] : kMessages) {
        const std::string whole = message;
        if (whole.size() < 200)
            continue;
        std::string wrapped;
        for (std::size_t at = 0; at < whole.size(); at += static_cast<std::size_t>(width))
            wrapped += whole.substr(at, static_cast<std::size_t>(width)) + "\n";
        const ExplainedText explained = explainText(wrapped);
        const ExplainedText straight = explainText(whole);
        QVERIFY2(explained.messages.size() == 1, name);
        QCOMPARE(tests::text(explained.messages.front().kind), QString(kind));
        QCOMPARE(explained.messages.front().change.has_value(), straight.messages.front().change.has_value());
        QCOMPARE(explained.messages.front().facts.size(), straight.messages.front().facts.size());
    }
}

void TestExplainMessage::equalMessagesOnce()
{
    std::string log;
    for (int rank = 0; rank < 20; ++rank) {
        std::string line = messageOf("timeout");
        line.replace(line.find("rank1"), 5, "rank" + std::to_string(rank));
        line.replace(line.find("Rank 1"), 6, "Rank " + std::to_string(rank));
        log += line + "\n";
    }
    const ExplainedText explained = explainText(log);
    QCOMPARE(explained.messages.size(), std::size_t{1});
    QCOMPARE(explained.messages.front().times, std::size_t{20});
    QCOMPARE(explained.messages.front().lines.size(), Explanation::kMostLines);
    QVERIFY(explainedText(explained, 80).find("ranks 0, 1, 2, 3") != std::string::npos);
}

void TestExplainMessage::unknown_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("nearest");
    QTest::newRow("nothing") << ""
                             << "";
    QTest::newRow("prose") << "the training went well and the loss is down to 0.1"
                           << "";
    QTest::newRow("an attribute of something else") << "AttributeError: module 'numpy' has no attribute 'P'"
                                                    << "JAX";
    QTest::newRow("the words of no message") << "Segmentation fault (core dumped)"
                                             << "";
    QTest::newRow("nearly one") << "Watchdog saw a collective operation time out on this rank: caught collective op timeout"
                                << "NCCL";
}

void TestExplainMessage::unknown()
{
    QFETCH(QString, text);
    QFETCH(QString, nearest);
    const ExplainedText explained = explainText(text.toStdString());
    QVERIFY(explained.messages.empty());
    QVERIFY2(tests::text(explained.nearest).startsWith(nearest) && explained.nearest.empty() == nearest.isEmpty(),
        explained.nearest.c_str());
}

/// A message in a Python traceback, with what JAX writes behind it, says what it says alone.
void TestExplainMessage::tracebacks_data()
{
    kinds_data();
}

void TestExplainMessage::tracebacks()
{
    QFETCH(QString, kind);
    QFETCH(QString, message);
    if (message == "Killed")
        return; // stands alone by its nature
    const std::string text = "Traceback (most recent call last):\n  File \"/home/ann/run.py\", line 212, in <module>\n"
                             "    state, loss = train_step(state, batch)\n                  ^^^^^^^^^^^^^^^^^^^^^^^^\n"
                             "  File \"/usr/lib/python3/site-packages/jax/_src/pjit.py\", line 338, in cache_miss\n"
                             "    return fun(*args, **kwargs)\n"
        + message.toStdString()
        + "\n--------------------\nFor simplicity, JAX has removed its internal frames from the traceback of the following "
          "exception. Set JAX_TRACEBACK_FILTERING=off to include these.\n";
    const ExplainedText explained = explainText(text);
    QCOMPARE(explained.messages.size(), std::size_t{1});
    QCOMPARE(tests::text(explained.messages.front().kind), kind);
    QVERIFY(saidOf(text).find("For simplicity") == std::string::npos);
}

void TestExplainMessage::hostile_data()
{
    QTest::addColumn<QByteArray>("text");
    QByteArray random;
    quint32 state = 1;
    for (int i = 0; i < 2'000'000; ++i)
        random += static_cast<char>((state = state * 1664525U + 1013904223U) >> 24U);
    QTest::newRow("random bytes") << random;
    QTest::newRow("NULs") << QByteArray(2'000'000, '\0');
    QTest::newRow("brackets") << "Involuntary full rematerialization from sharding " + QByteArray(1'000'000, '{')
            + QByteArray(1'000'000, '(');
    QTest::newRow("one long line") << QByteArray("Killed ").repeated(300'000);
    QTest::newRow("many messages") << QByteArray("CUDA out of memory. Tried to allocate 1.0 GiB\n").repeated(40'000);
    QTest::newRow("many different messages") << [] {
        QByteArray text;
        for (int i = 1; i < 20'000; ++i)
            text += "mat1 and mat2 shapes cannot be multiplied (1x" + QByteArray::number(i) + " and " + QByteArray::number(i + 1)
                + "x2)\n";
        return text;
    }();
    QTest::newRow("huge numbers") << QByteArray(
        "Involuntary full rematerialization. from sharding {devices=[99999999999999999999,1]<=[8]} to {devices=[1,8]<=[8]}\n"
        "was given the sharding of NamedSharding(mesh=Mesh('x': 9223372036854775807), spec=P('x')), which implies that the "
        "global size of its "
        "dimension 99999999999 should be divisible by 0, but it is equal to -5 (full shape: (1, 2))\n"
        "Ran out of memory in memory space hbm. Used 1e999G of 0G hbm.");
    QTest::newRow("dimensions that an array does not have")
        << QByteArray("shard_map was given argument arrays with axis sizes that are not evenly divisible by the corresponding "
                      "mesh axis sizes:\n"
                      "args[0] of shape f32[3,5], which maps array axis 7 (of size 3), but 2 does not evenly divide 3, and array "
                      "axis 0 (of size "
                      "3), but 2 does not evenly divide 3\n* args[1] of shape f32[, maps array axis 99999999999 (of size 3), but "
                      "2 does not evenly "
                      "divide 3\nCUDA out of memory. Tried to allocate 9e99 GiB. GPU 0 has a total capacity of 0 bytes of which "
                      "0 bytes is free.\n");
    QTest::newRow("huge meshes") << QByteArray(
        "Involuntary full rematerialization from sharding {devices=[16777216,1]<=[16777216]} to "
        "{devices=[1,16777216]<=[16777216]} without\n")
                                        .repeated(1000);
    QTest::newRow("escapes without end") << QByteArray("\033[").repeated(700'000);
    QTest::newRow("cut UTF-8") << QByteArray("Killed\xE2\x82\nmat1 and mat2 shapes cannot be multiplied (2x3 and 4x5) \xF0\x9F");
}

void TestExplainMessage::hostile()
{
    QFETCH(QByteArray, text);
    const ExplainedText explained = explainText(std::string_view(text.constData(), static_cast<std::size_t>(text.size())));
    QVERIFY(explained.messages.size() <= ExplainedText::kMostMessages);
    const std::string said = explainedText(explained, 80);
    QCOMPARE(QString::fromUtf8(said.c_str()).toUtf8(), QByteArray(said.c_str())); // it is UTF-8
    QVERIFY(said.size() < 400'000);
}

void TestExplainMessage::fitsTheTerminal()
{
    for (const auto& [name, kind, message] : kMessages) {
        const std::string said = saidOf(message);
        for (const std::string& line : split(said, '\n'))
            QVERIFY2(displayWidth(line) <= 80, (std::string(name) + ": " + line).c_str());
        QVERIFY2(said.find("  \n") == std::string::npos && said.find(" \n") == std::string::npos, said.c_str());
    }
}

void TestExplainMessage::lines()
{
    const LogText log("2024-06-01 19:39:55,123 a b\n  [rank0]: c\n\nE0531 10:54:04.832741 2609008 x.cc:569] de f");
    QCOMPARE(tests::text(log.squeezed()), "abcdef");
    QCOMPARE(log.lineCount(), std::size_t{4});
    QCOMPARE(log.lineAt(2), std::size_t{2});
    QCOMPARE(log.lineAt(3), std::size_t{4});
    QCOMPARE(tests::text(log.spaced(1, 6)), "b c de f");
    const MessagePart part(log, 2, 6);
    QCOMPARE(part.find("de").value(), std::size_t{1});
    QVERIFY(!part.has("ab"));
}

/// A whole array becomes split: each device keeps a part of what it has.
void TestExplainMessage::slicesMoveNothing()
{
    const Mesh mesh = tests::meshOf("x=4");
    const auto change
        = planChange({mesh, false, TensorSharding::replicatedOf(2), tests::shardingOf("P('x', None)", 2, mesh)}, std::nullopt);
    QVERIFY(change);
    QCOMPARE(change->cheapest.steps.size(), std::size_t{1});
    QCOMPARE(movedBytes(change->cheapest), std::int64_t{0});
    QCOMPARE(tests::text(amountText(movedBytes(change->cheapest), *change)), "nothing");
}

MESHWRIGHT_TEST(TestExplainMessage)

} // namespace tst_explain_message

#include "tst_explain_message.moc"
