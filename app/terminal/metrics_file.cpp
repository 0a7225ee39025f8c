// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/terminal/metrics_file.h"

#include "core/support/text.h"
#include "sim/report/results.h"

#include <cerrno>
#include <cstdio>

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

Result<std::unique_ptr<MetricsFile>> MetricsFile::open(const std::string& path, bool resumes)
{
    std::unique_ptr<MetricsFile> file(new MetricsFile(path));
    if (path.empty() || path == "-")
        return file;
    if (resumes) {
        if (auto before = readFile(path))
            file->m_before = *std::move(before);
    }
    auto opened = GrowingFile::open(path, !resumes);
    if (!opened)
        return opened.error();
    file->m_file.emplace(*std::move(opened));
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
    if (auto written = writeFileAtomically(m_path, kept); !written)
        return written;
    auto opened = GrowingFile::open(m_path, false);
    if (!opened)
        return opened.error();
    m_file.reset();
    m_file.emplace(*std::move(opened));
    return Done{};
}

Result<Done> MetricsFile::append(std::string_view line)
{
    if (m_file)
        return m_file->append(line);
    if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size() || std::fflush(stdout) != 0)
        return cannotWriteFile("standard output", errno);
    return Done{};
}

Result<Done> MetricsFile::write(const TrainingProgress& progress)
{
    if (m_path.empty() || !m_problems.empty())
        return Done{};
    Result<Done> done = m_hasBegun ? Result<Done>(Done{}) : begin(progress.step);
    if (done)
        done = append(sim::metricsLine(progress));
    if (!done)
        m_problems = done.error();
    return done;
}

Result<Done> MetricsFile::finish()
{
    m_file.reset();
    if (!m_problems.empty())
        return m_problems;
    return Done{};
}

} // namespace meshwright::cli
