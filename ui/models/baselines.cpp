// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/baselines.h"

#include "sim/compare/compare.h"

namespace meshwright::ui {

void Baselines::pin(const std::shared_ptr<const sim::Analysis>& analysis, const QString& title)
{
    const auto same = std::find_if(
        m_all.begin(), m_all.end(), [&](const Pinned& one) { return one.analysis && one.analysis->source == analysis->source; });
    m_current = static_cast<std::size_t>(same - m_all.begin());
    if (same == m_all.end()) {
        const std::vector<MeshAxis> mesh = analysis->simulated ? analysis->simulated->mesh.axes() : analysis->mesh().axes();
        m_all.push_back({QStringLiteral("%1: %2, %3").arg(++m_count).arg(title, QString::fromStdString(sim::axesText(mesh))),
            analysis, nullptr});
    }
    Q_EMIT changed();
}

void Baselines::pin(sim::Comparable result, const QString& title)
{
    const auto same = std::find_if(
        m_all.begin(), m_all.end(), [&](const Pinned& one) { return one.result && one.result->file == result.file; });
    m_current = static_cast<std::size_t>(same - m_all.begin());
    if (same == m_all.end())
        m_all.push_back({QStringLiteral("%1: %2").arg(++m_count).arg(title), nullptr, nullptr});
    m_all[m_current].result = std::make_shared<const sim::Comparable>(std::move(result));
    Q_EMIT changed();
}

void Baselines::setCurrent(std::size_t index)
{
    if (index == m_current)
        return;
    m_current = index;
    Q_EMIT changed();
}

void Baselines::remove(std::size_t index)
{
    m_all.erase(m_all.begin() + static_cast<std::ptrdiff_t>(index));
    if (m_current > index || (m_current == m_all.size() && m_current > 0))
        --m_current;
    Q_EMIT changed();
}

} // namespace meshwright::ui

#include "moc_baselines.cpp"
