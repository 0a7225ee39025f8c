// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/tensor_sharding.h"

#include <QString>

#include <string>

/// Short ways to write values in tests.
namespace meshwright::tests {

inline Mesh meshOf(std::string_view text, std::vector<DeviceId> order = {})
{
    return valueOf(parseMesh(text, std::move(order)));
}

/// The sharding of an array of `rank` dimensions by a spec such as `P('data', None)`.
inline TensorSharding shardingOf(std::string_view spec, std::size_t rank, const Mesh& mesh)
{
    return valueOf(toTensorSharding(valueOf(parseSpec(spec)), rank, mesh));
}

inline QString text(const std::string& utf8)
{
    return QString::fromStdString(utf8);
}

/// All ids of the problems, in order: `MW1110 MW1112`; empty for a value.
template <typename T>
QString idsOf(const Result<T>& result)
{
    QString ids;
    if (result)
        return ids;
    for (const Problem& problem : result.error())
        ids += (ids.isEmpty() ? "" : " ") + text(problem.id);
    return ids;
}

/// What the user reads of all problems.
template <typename T>
QString described(const Result<T>& result)
{
    return result ? QString() : text(describe(result.error()));
}

} // namespace meshwright::tests
