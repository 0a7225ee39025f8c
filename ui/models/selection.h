// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/session/session.h"

#include <QObject>
#include <QString>
#include <QTimer>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace meshwright::ui {

/// A collective of one analysis: its place in `stepCollectives`. Names do not tell collectives apart: many reduce "the result of dot_general".
struct CollectiveId {
    std::size_t index = 0;
    std::uint64_t generation = 0; ///< of the analysis: `Selection::generation` when it was the latest

    friend bool operator==(const CollectiveId&, const CollectiveId&) = default;
};

/// What is selected and what the pointer is over: one for all views of a window, so that they light up together; with the way back to what was
/// selected before. Setters that change nothing emit nothing.
class Selection : public QObject {
    Q_OBJECT

public:
    explicit Selection(QObject* parent = nullptr);
    ~Selection() override;

    /// Views are about to show this analysis. What is selected, and what was, is found again in it; what is no longer there is no longer selected.
    /// An analysis without a schedule changes nothing: views keep what they show.
    void setAnalysis(const sim::Analysis& analysis);

    /// Counts the analyses: ids of others are not taken.
    std::uint64_t generation() const { return m_generation; }

    /// The array whose layout is shown: "layers.1.w", "x". No two arrays of an analysis have one name. Empty: none.
    const QString& array() const { return m_now.array; }
    void setArray(const QString& name);

    /// The collective that is selected.
    const std::optional<CollectiveId>& collective() const { return m_now.collective; }
    void setCollective(const std::optional<CollectiveId>& id);

    /// The name of the slices that are selected in timelines ("all_reduce grad.layers.0.w"): all of the name are framed. Empty: none.
    const QString& operation() const { return m_now.operation; }
    void setOperation(const QString& name);

    /// Devices that the user picked; empty: none in particular.
    const std::set<DeviceId>& devices() const { return m_devices; }
    void setDevices(std::set<DeviceId> devices);

    /// The mesh axis that the pointer is over; empty: none.
    const QString& hoveredAxis() const { return m_hoveredAxis; }
    void setHoveredAxis(const QString& axis);

    /// What was selected before, and after that. What is selected by one gesture (an array and a collective, say) is one step.
    void back();
    void forward();
    bool canGoBack() const { return m_place > 0; }
    bool canGoForward() const { return m_place + 1 < m_history.size(); }

    /// Nothing is selected, and there is no way back: another study is opened.
    void clear();

    static constexpr std::size_t kMostSteps = 100;

Q_SIGNALS:
    void arrayChanged(const QString& name);
    void collectiveChanged();
    void operationChanged(const QString& name);
    void devicesChanged();
    void hoveredAxisChanged(const QString& axis);
    void historyChanged();

private:
    /// Which collective it is, whatever the analysis.
    struct CollectiveKey {
        std::string what; ///< kind, value, axes and phase
        int occurrence = 0; ///< among those of the same

        friend bool operator==(const CollectiveKey&, const CollectiveKey&) = default;
    };
    struct Selected {
        QString array;
        std::optional<CollectiveId> collective;
        QString operation;

        friend bool operator==(const Selected&, const Selected&) = default;
    };

    static std::vector<CollectiveKey> keysOf(const sim::Analysis& analysis);
    void remember();
    void go(std::size_t place);
    void show(const Selected& selected);

    std::uint64_t m_generation = 0;
    std::vector<CollectiveKey> m_keys; ///< of the collectives of the analysis
    Selected m_now;
    std::set<DeviceId> m_devices;
    QString m_hoveredAxis;
    std::vector<Selected> m_history{1};
    std::size_t m_place = 0; ///< of what is selected
    QTimer m_gestureEnds;
};

} // namespace meshwright::ui
