// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/selection.h"

#include "ui/models/step_collectives.h"

#include <fmt/format.h>

#include <map>

namespace meshwright::ui {

Selection::Selection(QObject* parent)
    : QObject(parent)
{
    m_gestureEnds.setSingleShot(true);
    m_gestureEnds.setInterval(0);
    connect(&m_gestureEnds, &QTimer::timeout, this, &Selection::remember);
}

Selection::~Selection() = default;

std::vector<Selection::CollectiveKey> Selection::keysOf(const sim::Analysis& analysis)
{
    std::vector<CollectiveKey> keys;
    std::map<std::string, int> seen;
    for (const sim::SimulatedCollective& collective : stepCollectives(analysis)) {
        const CollectiveUse& use = collective.use;
        std::string what = fmt::format("{} {} over {} in {}", opName(use.kind), use.cause.value, use.axes, phaseName(use.phase));
        const int occurrence = seen[what]++;
        keys.push_back({std::move(what), occurrence});
    }
    return keys;
}

void Selection::setAnalysis(const sim::Analysis& analysis)
{
    if (!analysis.scheduled)
        return;
    const std::vector<CollectiveKey> before = std::exchange(m_keys, keysOf(analysis));
    ++m_generation;
    const auto found = [&](Selected selected) {
        if (!selected.collective)
            return selected;
        const auto at = std::find(m_keys.begin(), m_keys.end(), before[selected.collective->index]);
        if (at != m_keys.end())
            selected.collective = CollectiveId{static_cast<std::size_t>(at - m_keys.begin()), m_generation};
        else
            selected.collective.reset();
        return selected;
    };
    for (Selected& one : m_history)
        one = found(std::move(one));
    const bool hadCollective = m_now.collective.has_value();
    m_now = found(std::move(m_now));
    if (hadCollective)
        Q_EMIT collectiveChanged();
}

void Selection::setArray(const QString& name)
{
    if (m_now.array == name)
        return;
    m_now.array = name;
    m_gestureEnds.start();
    Q_EMIT arrayChanged(name);
}

void Selection::setCollective(const std::optional<CollectiveId>& id)
{
    if (m_now.collective == id || (id && (id->generation != m_generation || id->index >= m_keys.size())))
        return;
    m_now.collective = id;
    m_gestureEnds.start();
    Q_EMIT collectiveChanged();
}

void Selection::setOperation(const QString& name)
{
    if (m_now.operation == name)
        return;
    m_now.operation = name;
    m_gestureEnds.start();
    Q_EMIT operationChanged(name);
}

void Selection::setDevices(std::set<DeviceId> devices)
{
    if (m_devices == devices)
        return;
    m_devices = std::move(devices);
    Q_EMIT devicesChanged();
}

void Selection::setHoveredAxis(const QString& axis)
{
    if (m_hoveredAxis == axis)
        return;
    m_hoveredAxis = axis;
    Q_EMIT hoveredAxisChanged(axis);
}

/// The gesture is over: what it selected is a step. What lay ahead is gone.
void Selection::remember()
{
    m_gestureEnds.stop();
    if (m_history[m_place] == m_now)
        return;
    if (m_history[m_place] == Selected{} && m_place == 0) {
        m_history = {m_now}; // to nothing there is no way back
    } else {
        m_history.resize(m_place + 1);
        m_history.push_back(m_now);
        if (m_history.size() > kMostSteps)
            m_history.erase(m_history.begin());
        m_place = m_history.size() - 1;
    }
    Q_EMIT historyChanged();
}

void Selection::back()
{
    remember();
    if (canGoBack())
        go(m_place - 1);
}

void Selection::forward()
{
    remember();
    if (canGoForward())
        go(m_place + 1);
}

void Selection::go(std::size_t place)
{
    m_place = place;
    const Selected selected = m_history[place];
    show(selected);
    m_gestureEnds.stop();
    m_history[place] = m_now; // as views have it: it is not a new step
    Q_EMIT historyChanged();
}

void Selection::show(const Selected& selected)
{
    setCollective(selected.collective);
    setOperation(selected.operation);
    setArray(selected.array);
}

void Selection::clear()
{
    show({});
    setDevices({});
    m_gestureEnds.stop();
    m_history = {{}};
    m_place = 0;
    Q_EMIT historyChanged();
}

} // namespace meshwright::ui

#include "moc_selection.cpp"
