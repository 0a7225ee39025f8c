// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/diagnose/message_kind.h"

#include "core/support/checked.h"
#include "core/support/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace meshwright {

namespace {

using Ids = std::vector<std::int64_t>;

/// Something of a message that has devices.
struct DeviceHolder {
    std::string name;
    std::string shape;
    Ids devices;
    std::string platform;
};

/// The devices in `[0, 1, 2]`; nothing for what is not a list of at most 100000 numbers.
std::optional<Ids> idsIn(std::string_view list)
{
    Ids ids;
    for (const std::string& part : split(list.substr(1, list.size() - 2), ',')) {
        const auto id = parseInteger(part);
        constexpr std::size_t kMost = 100000;
        if (!id || ids.size() >= kMost)
            return std::nullopt;
        ids.push_back(*id);
    }
    return ids;
}

/// All `.. with shape S and device ids [..] on platform P` of a message, in order.
std::vector<DeviceHolder> holdersIn(const MessagePart& part, std::size_t at)
{
    std::vector<DeviceHolder> holders;
    std::size_t from = part.after("got", at).value_or(at);
    constexpr std::size_t kMost = 4;
    while (holders.size() < kMost) {
        const auto words = part.find("deviceids", from);
        if (!words || *words > from + 3000)
            break;
        constexpr std::size_t kWords = 9;
        const auto list = bracketedAt(part.text(), *words + kWords);
        const auto ids = list ? idsIn(*list) : std::nullopt;
        if (!ids)
            break;
        DeviceHolder holder;
        std::string before = clause(part, from, *words);
        for (const std::string_view gone : {"and ", "another ", "argument "}) {
            if (before.starts_with(gone))
                before.erase(0, gone.size());
        }
        const std::size_t shape = before.find("with shape ");
        if (shape != std::string::npos)
            holder.shape = before.substr(shape + 11, before.find(' ', shape + 11) - shape - 11);
        for (const std::string_view end : {" of ", " with", "'s"})
            before.resize(std::min(before.find(end), before.size()));
        holder.name = std::string(trimmed(before));
        holder.devices = *ids;
        from = static_cast<std::size_t>(list->data() - part.text().data()) + list->size();
        constexpr std::string_view kOn = "onplatform";
        if (part.text().substr(from).starts_with(kOn)) {
            from += kOn.size();
            while (from < part.text().size() && part.text()[from] >= 'A' && part.text()[from] <= 'Z') // TPU, GPU, CPU
                holder.platform += part.text()[from++];
        }
        holders.push_back(std::move(holder));
    }
    return holders;
}

std::string shortIds(const Ids& ids)
{
    constexpr std::size_t kMost = 16;
    if (ids.size() > kMost)
        return fmt::format("{}, .. ({} devices)", fmt::join(Ids(ids.begin(), ids.begin() + kMost), ", "), ids.size());
    return fmt::format("{}", fmt::join(ids, ", "));
}

std::string padded(std::string text, std::size_t width)
{
    text.append(width - std::min(width, displayWidth(text)), ' ');
    return text;
}

constexpr std::size_t kMostColumns = 16;

/// Which devices each holder is on: a row of marks each.
std::string membershipPicture(const std::vector<DeviceHolder>& holders)
{
    std::set<std::int64_t> all;
    std::size_t width = 6;
    for (const DeviceHolder& holder : holders) {
        all.insert(holder.devices.begin(), holder.devices.end());
        width = std::max(width, std::min<std::size_t>(30, displayWidth(holder.name)));
    }
    Ids shown(all.begin(), all.end());
    shown.resize(std::min(shown.size(), kMostColumns));
    std::string text = padded("device", width);
    for (const std::int64_t id : shown)
        text += fmt::format("{:>3}", id);
    text += all.size() > shown.size() ? " ..\n" : "\n";
    for (const DeviceHolder& holder : holders) {
        const std::set<std::int64_t> own(holder.devices.begin(), holder.devices.end());
        text += padded(holder.name.substr(0, width), width);
        for (const std::int64_t id : shown)
            text += own.contains(id) ? "  ■" : "  ·";
        text += "\n";
    }
    return text;
}

/// The device at each position, and a mark where two differ.
std::string orderPicture(const DeviceHolder& a, const DeviceHolder& b)
{
    const std::size_t width = std::clamp<std::size_t>(std::max(displayWidth(a.name), displayWidth(b.name)), 8, 30);
    const std::size_t count = std::min({a.devices.size(), b.devices.size(), kMostColumns});
    std::string position = padded("position", width);
    std::string first = padded(a.name.substr(0, width), width);
    std::string second = padded(b.name.substr(0, width), width);
    std::string marks = padded("", width);
    for (std::size_t i = 0; i < count; ++i) {
        position += fmt::format("{:>4}", i);
        first += fmt::format("{:>4}", a.devices[i]);
        second += fmt::format("{:>4}", b.devices[i]);
        marks += a.devices[i] == b.devices[i] ? "    " : "   ^";
    }
    while (marks.ends_with(' '))
        marks.pop_back();
    return position + "\n" + first + "\n" + second + "\n" + marks + "\n";
}

void explainOrder(const DeviceHolder& a, const DeviceHolder& b, Explanation& out)
{
    out.kind = "device-order";
    out.title = "the same devices in another order";
    out.meaning = "Both are on the same devices, but their meshes list them in different orders: position k of one is another "
                  "device than position k of the "
                  "other, so the pieces do not match. One mesh came from create_device_mesh (which orders the devices along the "
                  "links), the other from "
                  "jax.devices() as it is, or from another reshape.";
    out.pictures.push_back({"device at each position", orderPicture(a, b)});
    out.remedy("Make one mesh and use it everywhere:", fmt::format("mesh = jax.make_mesh(({},), ('data',))\n", a.devices.size()));
    out.remedy("Or move one array over, once (it is sent between the devices):",
        "b = jax.device_put(b, NamedSharding(mesh, P('data')))\n");
}

bool explainIncompatible(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const std::vector<DeviceHolder> holders = holdersIn(part, at);
    out.meaning = "One computation runs on one list of devices. Its committed arrays (placed by device_put with a sharding, or "
                  "results of such "
                  "computations) are on different ones, and JAX moves no committed array by itself.";
    for (const DeviceHolder& holder : holders)
        out.fact(holder.name.empty() ? "array" : holder.name,
            fmt::format("{}{}device{} {}{}", holder.shape, holder.shape.empty() ? "" : " on ",
                holder.devices.size() == 1 ? "" : "s", shortIds(holder.devices),
                holder.platform.empty() ? "" : " of platform " + holder.platform));
    if (holders.size() < 2) {
        out.remedy("Put everything on the same mesh:", "x = jax.device_put(x, NamedSharding(mesh, P()))\n");
        return true;
    }
    const DeviceHolder& a = holders[0];
    const DeviceHolder& b = holders[1];
    const std::set<std::int64_t> left(a.devices.begin(), a.devices.end());
    const std::set<std::int64_t> right(b.devices.begin(), b.devices.end());
    if (left == right && a.devices != b.devices && a.platform == b.platform) {
        explainOrder(a, b, out);
        return true;
    }
    if (a.platform == b.platform)
        out.pictures.push_back({"where they are", membershipPicture(holders)});
    const DeviceHolder& small = a.devices.size() < b.devices.size() ? a : b;
    const DeviceHolder& large = &small == &a ? b : a;
    if (a.platform != b.platform)
        out.remedy(fmt::format("One is on {}, the other on {}: a device that was chosen by hand "
                               "(jax.devices('cpu'), JAX_PLATFORMS, a default device) is the "
                               "usual reason. Move it over:",
                       a.platform, b.platform),
            "x = jax.device_put(x, NamedSharding(mesh, P()))\n");
    else if (small.devices.size() < large.devices.size() && small.name.find("jit") != std::string::npos)
        out.remedies.push_back(
            {fmt::format("Inside the jitted function a sharding names another mesh. Let it name the one of {} devices:",
                 large.devices.size()),
                "x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P()))\n"});
    else if (small.devices.size() < large.devices.size())
        out.remedy(fmt::format("Place {} on the mesh of {} devices too; P() makes a copy on each of them:",
                       small.name.empty() ? "the smaller one" : small.name, large.devices.size()),
            "x = jax.device_put(x, NamedSharding(mesh, P()))\n");
    else
        out.remedies.push_back(
            {"Choose one of the two sets, and move the other array there:", "x = jax.device_put(x, NamedSharding(mesh, P()))\n"});
    if (small.devices.size() == 1 && small.name.find("jit") == std::string::npos)
        out.remedy("If it is a constant or a fresh array, make it without naming a device: jnp.zeros and numpy "
                   "arrays are not committed and follow the others.");
    return true;
}

bool explainAssembly(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    out.fact("says", clause(part, at, at + 240));
    if (part.find("expectedshardshape", at).value_or(at + 1) == at) {
        out.meaning = "An array is put together from one piece for each device, and a piece has another shape than the sharding "
                      "cuts the array into.";
        out.remedy("Ask the sharding for the shape of each piece, or let JAX cut:",
            "print(sharding.shard_shape(shape))\nx = jax.make_array_from_callback(shape, sharding, lambda i: data[i])\n");
        return true;
    }
    out.meaning = "An array is put together from pieces on devices, exactly one on each device of its sharding (of this "
                  "process). Here the devices of the pieces are "
                  "others than those of the sharding, or one has two pieces.";
    out.remedy("Take the devices from the sharding, in its order:",
        "places = sharding.addressable_devices_indices_map(shape)\npieces = [jax.device_put(data[i], d) for d, i in "
        "places.items()]\nx = jax.make_array_from_single_device_arrays(shape, sharding, pieces)\n");
    return true;
}

/// "Number of devices 8 must equal the product of mesh_shape (4, 4)"
bool explainMeshSize(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    out.fact("says", clause(part, part.find("numberofdevices").value_or(at), at + 120));
    const auto devices = part.integer("numberofdevices");
    const auto shape = part.bracketed("productofmesh_shape", at);
    const auto sizes = shape ? shapeIn(*shape) : std::nullopt;
    const auto product = sizes ? checkedProduct(*sizes) : std::nullopt;
    if (devices && product)
        out.fact("devices", fmt::format("{} there, {} asked for", *devices, *product));
    out.meaning = "The sizes of the mesh's axes multiply to another number than there are devices.";
    out.remedy("Check how many devices there are; on CPUs for tests, ask for more before JAX starts:",
        fmt::format("export XLA_FLAGS=--xla_force_host_platform_device_count={}\n", product.value_or(8)));
    if (devices && product && *devices >= 1 && sizes->size() >= 2) {
        Shape fitting = *sizes; // the first axis takes what the others leave, which shrink until they divide
        std::int64_t rest = 1;
        for (std::size_t dim = fitting.size(); dim-- > 1;) {
            fitting[dim] = std::gcd(fitting[dim], *devices / rest);
            rest *= fitting[dim];
        }
        fitting.front() = *devices / rest;
        out.remedy(fmt::format("Or give the axes sizes that multiply to {}:", *devices),
            fmt::format("mesh_shape = ({})\n", fmt::join(fitting, ", ")));
    } else {
        out.remedy("Or let one axis take what is left:", "n = jax.device_count()\nmesh = jax.make_mesh((n,), ('data',))\n");
    }
    return true;
}

bool explainReshapeOfDevices(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const auto size = part.integer("cannotreshapearrayofsize", at);
    const auto shape = part.bracketed("intoshape", at);
    if (!size || !shape)
        return false;
    out.fact("elements",
        fmt::format("{} into {}", *size,
            clause(part, static_cast<std::size_t>(shape->data() - part.text().data()),
                static_cast<std::size_t>(shape->data() - part.text().data()) + shape->size())));
    return true;
}

/// "compiling computation that requires 8 logical devices, but only 4 XLA devices are available (num_replicas=8)"
bool explainTooFewDevices(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const auto needed = part.integer("thatrequires", at > 120 ? at - 120 : 0);
    const auto there = part.integer("butonly", at > 60 ? at - 60 : 0);
    if (needed && there)
        out.fact("devices", fmt::format("{} needed, {} there", *needed, *there));
    out.meaning
        = "The program was made for more devices than this process sees: pmap maps one row of its argument to each device, "
          "and an exported or compiled program keeps the number that it was made for.";
    out.remedy("On CPUs for tests, ask for more before JAX starts:",
        fmt::format("export XLA_FLAGS=--xla_force_host_platform_device_count={}\n", needed.value_or(8)));
    out.remedy("Or let the first dimension have one row for each device:",
        "n = jax.local_device_count()\nx = x.reshape(n, -1, *x.shape[1:])\n");
    return true;
}

/// "pmap got inconsistent sizes for array axes to be mapped:" and a line for each size.
bool explainMappedSizes(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const auto lines = part.after("tobemapped:", at);
    if (lines)
        out.fact("says", clause(part, *lines, *lines + 240));
    return true;
}

/// "Executable expected parameter 0 of size 1024 (f32[256]) but got buffer with incompatible size 2048 (f32[512])"
bool explainBufferSize(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const auto wanted = part.find("expected", at > 200 ? at - 200 : 0);
    out.fact("says", clause(part, wanted.value_or(at), at + 160));
    return true;
}

/// "device 8 > num_devices (4) in tile assignment", "Number of tile assignment dimensions .. is different than the input rank."
bool explainTiles(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    out.fact("says", clause(part, at > 60 ? part.log().lineBegin(part.begin() + at) - part.begin() : 0, at + 160));
    return true;
}

bool explainRendezvous(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const auto expected = part.integer("expected", at > 200 ? at - 200 : 0);
    const auto arrived = part.integer("butonly", at);
    if (expected && arrived)
        out.fact("arrived", fmt::format("{} of {} devices", *arrived, *expected));
    return true;
}

// ---- NCCL ----------------------------------------------------------------------------------------------------------------------

/// Another collective that a rank near by in the log waited for under the same number: "rank 5: ALLGATHER". Empty: none.
std::string otherAtNumber(const MessagePart& part, std::size_t at, std::string_view op, std::int64_t number)
{
    constexpr std::size_t kNear = 100'000; // characters: the ranks' watchdogs speak at about the same time
    constexpr std::string_view kWork = "worknccl(";
    const std::size_t middle = part.begin() + at;
    const std::size_t begin = middle - std::min(middle, kNear);
    const MessagePart near(part.log(), begin, std::min(part.log().squeezed().size(), middle + kNear));
    for (auto work = near.find(kWork); work; work = near.find(kWork, *work + kWork.size())) {
        const std::string_view other = near.name("optype=", *work);
        if (near.integer("seqnum=", *work) != number || other.empty() || other == op)
            continue;
        const std::size_t line = near.log().lineBegin(begin + *work);
        const auto rank = near.integer("[rank", line - std::min(line, begin));
        return rank ? fmt::format("rank {}: {}", *rank, other) : std::string(other);
    }
    return {};
}

bool explainNcclTimeout(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const std::string_view op = part.name("optype=", at);
    const auto sequence = part.integer("seqnum=", at);
    const auto elements = part.integer("numelin=", at);
    const auto limit = part.integer("timeout(ms)=", at);
    std::set<std::int64_t> ranks;
    if (const auto rank = part.integer("[rank"))
        ranks.insert(*rank);
    if (!op.empty())
        out.facts.push_back(
            {"collective", fmt::format("{}{}", op, sequence ? fmt::format(", number {} of its group", *sequence) : "")});
    if (elements)
        out.fact("elements", formatCount(static_cast<double>(*elements)));
    if (limit)
        out.fact("waited", formatSeconds(static_cast<double>(*limit) / 1000.0));
    if (!ranks.empty())
        out.fact("said by", fmt::format("rank {}", *ranks.begin()));
    const std::string other = op.empty() || !sequence ? std::string() : otherAtNumber(part, at, op, *sequence);
    out.fact("same number", other);
    if (!other.empty())
        out.remedies.insert(out.remedies.begin(),
            {fmt::format(
                "Two collectives have number {}. In one group that means that its ranks call different collectives: look "
                "for code that depends on the rank or on the data. Groups count for themselves, so compare the groups "
                "first.",
                *sequence)});
    return true;
}

/// A fingerprint's fields that two ranks differ in.
std::string fieldOf(const MessagePart& part, std::string_view name, std::size_t from)
{
    const auto start = part.after(name, from);
    if (!start)
        return {};
    if (const auto list = bracketedAt(part.text(), *start))
        return std::string(*list);
    std::size_t end = *start;
    while (end < part.text().size() && part.text()[end] != ',' && part.text()[end] != ')')
        ++end;
    return std::string(part.text().substr(*start, end - *start));
}

bool explainNcclMismatch(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const auto first = part.integer("rank", part.after("onranks.", at).value_or(at));
    const auto butRank = part.find("butrank", at);
    const auto second = butRank ? part.integer("butrank", at) : std::nullopt;
    if (first && second) {
        std::string sizes;
        for (const auto& [rank, from] : {std::pair(*first, at), std::pair(*second, *butRank)}) {
            const std::string op = fieldOf(part, "optype=", from);
            const std::string shape = fieldOf(part, "tensorshape=", from);
            const std::string number = fieldOf(part, "sequencenumber=", from);
            out.fact(fmt::format("rank {}", rank),
                fmt::format("{}{}{}", op, shape.empty() ? "" : " of " + shape, number.empty() ? "" : ", number " + number));
        }
    }
    return true;
}

bool explainNcclError(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    out.fact("says", clause(part, at, at + 220));
    constexpr std::size_t kLastError = 600; ///< how far behind, at most, NCCL says what failed
    constexpr std::size_t kOperation = 200; ///< how far before, at most, XLA names the operation
    const auto operation = part.find("nccloperation");
    const bool isXla = operation && *operation < at && at - *operation < kOperation;
    if (isXla)
        out.fact("operation", clause(part, *operation + std::string_view("nccloperation").size(), at));
    if (const auto memory = part.find("'outofmemory'", at); memory && *memory < at + kLastError) {
        out.meaning
            = "NCCL could not get memory on the GPU for its own buffers: each communicator takes some hundred MiB, and the "
              "framework had taken all there was.";
        if (isXla)
            out.remedy("Leave room for it: JAX takes 75 % of the memory at its start; take less, or a smaller batch per device:",
                "export XLA_PYTHON_CLIENT_MEM_FRACTION=0.7\n");
        else
            out.remedy("Leave room for it: a smaller batch per device, or a cap on what PyTorch takes:",
                "torch.cuda.set_per_process_memory_fraction(0.95)\n");
        out.remedy("Or make NCCL's buffers smaller:", "export NCCL_BUFFSIZE=2097152\n");
        return true;
    }
    out.meaning
        = "NCCL could not reach a peer, or a peer went away. Usually another rank failed first and this one only noticed it.";
    out.remedy("Find the first rank that failed. If none did, let NCCL say which link it cannot use:",
        "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET torchrun ..\n");
    return true;
}

} // namespace

std::span<const MessageKind> deviceMessageKinds()
{
    static const std::vector<MessageKind> kKinds = {
        {"incompatible-devices", "JAX", "arrays on different devices",
            {"receivedincompatibledevicesforjittedcomputation", "devicesofall`array`inputsandoutputsshouldbethesame"},
            explainIncompatible},
        {"pieces-and-sharding-differ", "JAX", "the pieces of an array do not fit its sharding",
            {"per-devicearraysdevicesdonotmatch", "expectedshardshape", "inputarraysmustbefromdistinctdevices",
                "shardingcontainsdevices"},
            explainAssembly, 600},
        {"mesh-and-devices-differ", "JAX", "the mesh asks for another number of devices",
            {"mustequaltheproductofmesh_shape", "mustbe>=theproductofmesh_shape"}, explainMeshSize},
        {"mesh-and-devices-differ", "NumPy", "a list of another length than the mesh", {"cannotreshapearrayofsize"},
            explainReshapeOfDevices, 0, 0,
            "A reshape must keep the number of elements. Where the array is the list of devices "
            "(np.array(jax.devices()).reshape(..)), the mesh asks for another number of devices than there are.",
            {{"Let the sizes multiply to the number of devices:",
                "n = jax.device_count()\nmesh = jax.make_mesh((n // 2, 2), ('data', 'model'))\n"}}},
        {"too-few-devices", "JAX", "more devices are asked for than there are", {"xladevicesareavailable"}, explainTooFewDevices},
        {"mapped-sizes-differ", "JAX", "mapped arguments of different sizes", {"gotinconsistentsizesforarrayaxestobemapped"},
            explainMappedSizes, 400, 0,
            "pmap and vmap run a function once for each row of their arguments, so every argument that is mapped must have as "
            "many rows. One has another number: often parameters that were not copied to every device beside a batch that was "
            "cut for them.",
            {{"Do not map what is the same for all:", "f = jax.pmap(f, in_axes=(None, 0))\n"},
                {"Or leave pmap: under jit arrays keep their whole shapes, and shardings say how they are placed:",
                    "x = jax.device_put(x, NamedSharding(mesh, P('data')))\ny = jax.jit(f)(params, x)\n"}}},
        {"not-addressable", "JAX", "device_put onto other processes' devices", {"ashardingwhichrepresentsaddressabledevices"},
            nullptr, 0, 0,
            "With several processes device_put can place an array only on the devices of this process. The given sharding also "
            "uses other processes' devices.",
            {{"Let every process give its own part of the global array:",
                 "x = jax.make_array_from_process_local_data(sharding, local)\n"},
                {"Or let a jitted function make it, which runs on all of them:",
                    "x = jax.jit(lambda: jnp.zeros(shape), out_shardings=sharding)()\n"}}},
        {"buffer-size", "XLA", "an argument of another size than the program was compiled for",
            {"butgotbufferwithincompatiblesize", "butgotincompatibleshape"}, explainBufferSize, 0, 0,
            "A compiled program got a buffer of another size than it was compiled for: an argument of another shape, or a piece "
            "of another layout than the one of the call that was compiled.",
            {{"Compile again for the new shapes (jit does so by itself; an exported or ahead-of-time compiled function does "
              "not), or bring the argument into the layout that it was compiled for:",
                "x = jax.device_put(x, NamedSharding(mesh, P('data')))\n"}}},
        {"tiles-and-devices-differ", "XLA", "a tile string that does not fit",
            {"intileassignment", "numberoftileassignmentdimensions"}, explainTiles, 200, 0,
            "A tile string `{devices=[4,2]<=[8]}` has one number for each dimension of its array (and one more for replicas with "
            "last_tile_dim_replicate), and their product is the number of devices that the program runs on. This one does not "
            "fit the array, or the program was made for another number of devices.",
            {{"See what the string says, and what it would be for your mesh:",
                "meshwright convert \"P('data', None)\" --mesh data=4,model=2 --to hlo\n"}}},
        {"not-addressable", "JAX", "an array that is on other processes too", {"spansnon-addressable"}, nullptr, 0, 0,
            "With several processes each can read only the pieces on its own devices. Printing, np.asarray or .item() of an "
            "array that is also on other processes' devices would need all of it here.",
            {{"Read what is here, or gather it everywhere first:",
                "local = [s.data for s in x.addressable_shards]\nfull = multihost_utils.process_allgather(x, tiled=True)\n"}}},
        {"collective-mismatch", "PyTorch", "ranks call different collectives", {"detectedmismatchbetweencollectivesonranks"},
            explainNcclMismatch, 0, 0,
            "The ranks of one group call different collectives, or the same one with different sizes. They would wait for ever, "
            "or mix their data up.",
            {{"Every rank must run the same collectives in the same order with the same shapes. Look for code that depends on "
              "the rank or on the data: an early exit, a last batch of another size (drop_last=True), experts or parameters "
              "without gradients, a print of a sharded tensor."}}},
        {"collective-timeout", "NCCL", "a collective that not all ranks joined", {"watchdogcaughtcollectiveoperationtimeout"},
            explainNcclTimeout, 0, 0,
            "The watchdog of NCCL waited this long for a collective that not all ranks of the group joined. The ranks that say "
            "so are those that did join: look for the one that says nothing, or another number.",
            {{"Compare SeqNum and OpType over all ranks. Different numbers: a rank skipped or added a collective (an if on the "
              "rank, an uneven number of batches, a parameter without gradient). Same number and OpType: a rank is slow or "
              "dead."},
                {"Let the next run say which rank waits where:",
                    "export TORCH_NCCL_TRACE_BUFFER_SIZE=20000\nexport TORCH_NCCL_DUMP_ON_TIMEOUT=1\nexport "
                    "TORCH_DISTRIBUTED_DEBUG=DETAIL\n"},
                {"Only when a rank really needs so long (loading, evaluation on rank 0):",
                    "dist.init_process_group('nccl', timeout=timedelta(hours=1))\n"}}},
        {"collective-timeout", "XLA", "a collective that not all devices joined",
            {"threadstojointherendezvous", "participantthreadswillbeterminated", "terminationtimeoutforrendezvous"},
            explainRendezvous, 600, 0,
            "All devices of a collective must come to it. Some did not within the time allowed: they are still computing (a "
            "crowded or paused host, a long compilation on one of them), or they run another program and wait at another "
            "collective.",
            {{"See what the missing devices do: an exception, a print of a global array or an if on jax.process_index() around a "
              "jitted call lets some of them run a different program."},
                {"On CPUs with many virtual devices, use fewer, or allow more time:",
                    "F=--xla_cpu_collective_call_terminate_timeout_seconds=300\nXLA_FLAGS=$F python train.py\n"}}},
        {"process-missing", "JAX", "a process of the job is missing",
            {"barriertimedout", "deadline_exceeded:barrier", "taskshaveunexpectedlydisconnected"}, nullptr, 600, 200,
            "The processes of the job wait for one another at the start, before each compilation and at checkpoints. One of them "
            "did not come: it has crashed, has not started, or cannot be reached.",
            {{"Look at the end of every process' log: the first that stopped has the reason. The others only report that it is "
              "missing."}}},
        {"nccl-error", "NCCL", "a link or a peer failed",
            {"failed:unhandledcudaerror", "failed:unhandledsystemerror", "failed:remoteprocessexited", // XLA's words
                "ncclsystemerror:", "ncclunhandledcudaerror", "ncclremoteerror:", "ncclinternalerror:", "ncclerrorin:",
                "ncclerror1:", "ncclerror2:", "ncclerror3:", "ncclerror6:", "gotcompletionfrompeer", // a network card's
                "ncclwarncudafailure2'outofmemory'", "ncclwarncudafailure'outofmemory'"},
            explainNcclError, 400},
    };
    return kKinds;
}

} // namespace meshwright
