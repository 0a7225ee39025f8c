// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/metrics_file.h"

#include "core/support/file.h"
#include "core/support/text.h"
#include "sim/report/results.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace meshwright::cli {

namespace {

/// The step of a line of metrics; 0 when it is none.
std::int64_t stepOf(std::string_view line)
{
    constexpr std::string_view kKey = "\"step\":";
    const std::size_t at = line.find(kKey);
    if (at == std::string_view::npos)
        return 0;
    const std::string_view rest = line.substr(at + kKey.size());
    return parseInteger(rest.substr(0, rest.find_first_not_of("0123456789"))).value_or(0);
}

} // namespace

Problem MetricsFile::cannotWrite(int error) const
{
    return {"MW1005", fmt::format("cannot write \"{}\": {}", m_path, std::strerror(error)),
        "name a file in a folder that exists and that you may write to", Place{m_path}};
}

Result<std::unique_ptr<MetricsFile>> MetricsFile::open(const std::string& path, bool resumes)
{
    std::unique_ptr<MetricsFile> file(new MetricsFile(path));
    if (path.empty() || path == "-")
        return file;
    if (resumes) {
        if (auto before = readFile(path))
            file->m_before = *std::move(before);
    }
    file->m_stream.reset(std::fopen(path.c_str(), resumes ? "ab" : "wb"));
    if (file->m_stream == nullptr)
        return file->cannotWrite(errno);
    return file;
}

/// Leaves only the lines of steps before the first one of this run.
Result<Done> MetricsFile::begin(std::int64_t firstStep)
{
    m_hasBegun = true;
    if (m_before.empty())
        return Done{};
    std::string kept;
    for (const std::string& line : split(m_before, '\n')) {
        if (const std::int64_t step = stepOf(line); step > 0 && step < firstStep)
            kept += line + '\n';
    }
    m_stream.reset(std::fopen(m_path.c_str(), "wb"));
    if (m_stream == nullptr || std::fwrite(kept.data(), 1, kept.size(), m_stream.get()) != kept.size())
        return cannotWrite(errno);
    return Done{};
}

void MetricsFile::write(const TrainingProgress& progress)
{
    if (m_path.empty() || !m_problems.empty())
        return;
    if (!m_hasBegun) {
        if (auto begun = begin(progress.step); !begun)
            return append(m_problems, begun.error());
    }
    const std::string line = sim::metricsLine(progress);
    std::FILE* stream = m_path == "-" ? stdout : m_stream.get();
    if (std::fwrite(line.data(), 1, line.size(), stream) != line.size() || std::fflush(stream) != 0)
        m_problems.push_back(cannotWrite(errno));
}

Result<Done> MetricsFile::finish()
{
    m_stream.reset();
    if (!m_problems.empty())
        return m_problems;
    return Done{};
}

} // namespace meshwright::cli
