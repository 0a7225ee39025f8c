// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mesh/mesh.h"

#include <QObject>
#include <QString>

#include <set>

namespace meshwright::ui {

/// What is selected and what the pointer is over: one for all views of a window, so that they light up together.
/// Setters that change nothing emit nothing.
class Selection : public QObject {
    Q_OBJECT

public:
    explicit Selection(QObject* parent = nullptr);

    /// The array whose layout is shown: "layers.1.w", "x". Empty: none.
    const QString& array() const { return m_array; }
    void setArray(const QString& name);

    /// Devices that the user picked; empty: none in particular.
    const std::set<DeviceId>& devices() const { return m_devices; }
    void setDevices(std::set<DeviceId> devices);

    /// The mesh axis that the pointer is over; empty: none.
    const QString& hoveredAxis() const { return m_hoveredAxis; }
    void setHoveredAxis(const QString& axis);

    /// The op or collective that is selected, by its name in timelines ("all_reduce grad.layers.0.w"). Empty: none.
    const QString& operation() const { return m_operation; }
    void setOperation(const QString& name);

Q_SIGNALS:
    void arrayChanged(const QString& name);
    void devicesChanged();
    void hoveredAxisChanged(const QString& axis);
    void operationChanged(const QString& name);

private:
    QString m_array;
    std::set<DeviceId> m_devices;
    QString m_hoveredAxis;
    QString m_operation;
};

} // namespace meshwright::ui
