// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/selection.h"

namespace meshwright::ui {

Selection::Selection(QObject* parent)
    : QObject(parent)
{
}

void Selection::setArray(const QString& name)
{
    if (m_array == name)
        return;
    m_array = name;
    Q_EMIT arrayChanged(name);
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

void Selection::setOperation(const QString& name)
{
    if (m_operation == name)
        return;
    m_operation = name;
    Q_EMIT operationChanged(name);
}

} // namespace meshwright::ui
