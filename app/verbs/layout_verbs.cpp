// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/verbs/verb_table.h"

#include "app/verbs/verbs.h"
#include "core/sharding/logical_axes.h"
#include "core/sharding/notation.h"
#include "core/support/text.h"

#include <CLI/App.hpp>

#include <memory>

namespace meshwright::cli {

namespace {

constexpr const char* kShowExamples = R"help(  meshwright show --mesh a=4,b=2 --shape 8192x8192 --spec "P('a', 'b')"
  meshwright show 'bf16[8192@a,8192@b]' --mesh a=4,b=2
  meshwright show --mesh x=8 --shape 128x512 --spec "P(None, 'x')" --format json
  meshwright show --mesh a=4,b=2 --device-order 0,1,2,3,6,7,4,5 --shape 64x64x64 --spec "P('a')" --format svg -o layout.svg)help";

constexpr const char* kMeshExamples = R"help(  meshwright mesh --hw v3 --topology 2x2 --mesh a=8
  meshwright mesh --hw v5e --topology 4x4 --mesh data=4,model=4 --format json
  meshwright mesh --hw h100 --hosts 4 --mesh data=4,model=8
  meshwright mesh --hw v5e --topology 4x4 --mesh data=4,model=4 --format svg
  meshwright mesh --hw v4 --topology 2x2x2 --ici data=4,model=2 --dcn data=2)help";

constexpr const char* kConvertExamples = R"help(  meshwright convert "P('data', None)" --mesh data=4,model=2 --to hlo
  meshwright convert "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}"
  meshwright convert "A[I_X, J]" --mesh X=4 --shape 8x8
  meshwright convert --logical "embed,mlp" --stacked layers@1 --rules maxtext --mesh data=2,fsdp=4,tensor=2 --to jax)help";

constexpr const char* kReshardExamples
    = R"help(  meshwright reshard --mesh data=4,model=2 --shape 8192x8192 --from "P('data', None)" --to "P(None, 'model')"
  meshwright reshard --mesh x=4,y=2 --shape 64x64x64 --from "P('y', None, 'x')" --to "P(None, ('x', 'y'), None)" --shardy
  meshwright reshard --mesh x=4,y=2 --shape 8192x8192 --dtype bf16 --from "P('x')" --to "P(None, 'x')" --hw v5e --topology 4x2
  meshwright reshard 'f32[512@x,512@y,512]' 'f32[512,512@x,512@y]' --hw h100x16
  meshwright reshard --mesh x=4 --shape 8x8 --from "P('x', None)" --to "P(None, 'x')" --format svg -o moves.svg
  meshwright reshard --from checkpoints/ --to other_mesh.yaml --dry-run)help";

} // namespace

void addShow(VerbTable& table)
{
    const auto options = std::make_shared<ShowOptions>();
    Verb& verb = table.add("show", "Draw how an array is sharded over a mesh of devices.", kShowExamples,
        {Format::Text, Format::Json, Format::Svg}, [options](Output& output) { return runShow(*options, output); });
    verb.needed.push_back(
        verb.app->add_option("--mesh", options->mesh, "Axes with their sizes: data=4,model=2")->type_name("AXES"));
    verb.app->add_option("--shape", options->shape, "Sizes of the array, if the spec does not state them: 8192x8192, or scalar")
        ->type_name("SHAPE");
    verb.needed.push_back(
        verb.app->add_option("--spec,SPEC", options->spec, "PartitionSpec: \"P('data', None)\", or a sharding in any notation")
            ->type_name("SPEC"));
    verb.app->add_option("--device-order", options->deviceOrder, "Device ids in mesh order: 0,1,3,2 (default 0,1,2,...)")
        ->type_name("IDS");
    verb.app->add_option("--platform", options->platform, "Platform name before device ids (default TPU)")->type_name("WORD");
    verb.app->add_option("--dtype", options->dtype, "Element type (default f32)")->type_name("TYPE");
    verb.app->add_option("--name", options->name, "Name of the array in headings (default x)")->type_name("NAME");
    verb.app->add_option("--scale", options->scale, "Size of the text drawing (default 1)")
        ->type_name("NUMBER")
        ->check(anyNumber);
    verb.app->add_flag(
        "--pad", options->pad, "Pad dimensions that are not divisible, as inside a program, instead of refusing them");
    verb.addFile("-o,--output", options->file, "File to write instead of standard output", WrittenFile::Kind::Result);
}

void addMesh(VerbTable& table)
{
    const auto options = std::make_shared<MeshOptions>();
    Verb& verb
        = table.add("mesh", "Order a machine's devices for a logical mesh, and list the links of each axis.", kMeshExamples,
            {Format::Text, Format::Json, Format::Svg}, [options](Output& output) { return runMesh(*options, output); });
    verb.needed.push_back(verb.app->add_option("--hw", options->chip, "The chip: v3, v5e, h100, ...")->type_name("CHIP"));
    verb.app->add_option("--topology", options->topology, "Chips of a TPU slice along x, y and z: 4x4")->type_name("SIZES");
    verb.app->add_option("--hosts", options->hosts, "Hosts of GPUs (default 1)")->type_name("N")->check(wholeNumber(1));
    verb.app->add_option("--per-host", options->perHost, "GPUs per host (default: all that share its fast links)")
        ->type_name("N")
        ->check(wholeNumber(1));
    verb.app
        ->add_option("--mesh", options->mesh, "Axes with their sizes, in devices: data=4,model=2; -1 takes the remaining devices")
        ->type_name("AXES");
    verb.app->add_option("--ici", options->inner, "Axes within each of several slices (or hosts), with --dcn")->type_name("AXES");
    verb.app->add_option("--dcn", options->outer, "Axes over slices (or hosts)")->type_name("AXES");
    verb.app->add_option("--order", options->order, "jax: as create_device_mesh (default); axes: along the physical axes")
        ->type_name("ORDER");
    verb.app->add_flag("--whole-axes", options->wholeAxes,
        "Refuse a mesh that splits physical axes (create_device_mesh without allow_split_physical_axes)");
    verb.app->add_flag(
        "--contiguous-submeshes", options->contiguousSubmeshes, "Every host owns a contiguous part of the mesh (TPU v4, v5p)");
    verb.addFile("-o,--output", options->file, "File to write instead of standard output", WrittenFile::Kind::Result);
}

void addConvert(VerbTable& table)
{
    const auto options = std::make_shared<ConvertOptions>();
    Verb& verb = table.add("convert", "Convert a sharding to another notation, or to all of them.", kConvertExamples,
        {Format::Text, Format::Json}, [options](Output& output) { return runConvert(*options, output); });
    verb.app->add_option("SHARDING", options->text, "Sharding in any notation, recognised from the text")->type_name("");
    verb.app
        ->add_option("--mesh", options->mesh,
            "Axes with their sizes, if the text does not state them: data=4,model=2, or a printed Mesh(..)")
        ->type_name("AXES");
    verb.app->add_option("--device-order", options->deviceOrder, "Device ids in mesh order: 0,1,3,2 (default 0,1,2,...)")
        ->type_name("IDS");
    verb.app->add_option("--shape", options->shape, "Sizes of the array, for notations that need them")->type_name("SHAPE");
    verb.app
        ->add_option(
            "--logical", options->logical, "Instead of a sharding: logical names of the dimensions, for --rules: batch,embed")
        ->type_name("NAMES");
    verb.app
        ->add_option("--rules", options->rules,
            "Logical axis rules: " + join(logicalRuleListNames(), ", ")
                + ", [['batch', 'data'], ...], or a YAML file that has them")
        ->type_name("RULES");
    verb.app->add_option("--semantics", options->semantics, "How rules apply: linen (default) or nnx")->type_name("NAME");
    verb.app->add_option("--stacked", options->stacked, "The array is stacked over layers: layers@1")->type_name("NAME@DIM");
    std::vector<std::string> names;
    for (const Notation notation : allNotations())
        names.emplace_back(notationName(notation));
    verb.app->add_option("--to", options->to, "Notation to write (default: all): " + join(names, ", "))->type_name("NOTATION");
}

void addReshard(VerbTable& table)
{
    const auto options = std::make_shared<ReshardOptions>();
    Verb& verb = table.add("reshard", "Find the cheapest collectives that change the sharding of an array.", kReshardExamples,
        {Format::Text, Format::Json, Format::Svg}, [options](Output& output) { return runReshard(*options, output); });
    verb.app->add_option("--mesh", options->mesh, "Axes with their sizes, if the layouts do not state them: data=4,model=2")
        ->type_name("AXES");
    verb.app->add_option("--shape", options->shape, "Sizes of the array: 8192x8192, or scalar")->type_name("SHAPE");
    verb.needed.push_back(
        verb.app->add_option("--from,FROM", options->from, "Sharding before, in any notation; or a folder of checkpoints")
            ->type_name("SHARDING"));
    verb.needed.push_back(
        verb.app->add_option("--to,TO", options->to, "Sharding after, in any notation; for checkpoints: the study to restore to")
            ->type_name("SHARDING"));
    verb.app->add_flag("--dry-run", options->dryRun, "For checkpoints: only list what each device reads");
    verb.app
        ->add_option(
            "-o,--output", options->result, "File to write instead of standard output; for checkpoints: folder for the new one")
        ->type_name("PATH");
    addSettings(*verb.app, options->settings);
    verb.app->add_option("--dtype", options->dtype, "Element type (default f32)")->type_name("TYPE");
    verb.app->add_option("--hw", options->hardware, "Chip, to choose the fastest sequence: v5e, h100")->type_name("CHIP");
    verb.app->add_option("--topology", options->topology, "Chips along each axis of a slice: 4x2")->type_name("SIZES");
    verb.app->add_option("--hosts", options->hosts, "Hosts of GPUs (default 1)")->type_name("N")->check(wholeNumber(1));
    verb.app->add_flag("--shardy", options->shardy, "Use Shardy's sequence instead of the cheapest");
}

} // namespace meshwright::cli
