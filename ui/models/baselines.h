// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/session/session.h"

#include <QObject>
#include <QString>

#include <memory>
#include <vector>

namespace meshwright::sim {
struct Comparable;
}

namespace meshwright::ui {

/// States of studies that were pinned to be compared with, also of other files, and results; one of them is the baseline.
class Baselines : public QObject {
    Q_OBJECT

public:
    struct Pinned {
        QString name; ///< "1: wide_mlp, data=4,model=2"
        std::shared_ptr<const sim::Analysis> analysis; ///< null: a result, of which no more is known
        std::shared_ptr<const sim::Comparable> result; ///< null: a state of a study
    };

    using QObject::QObject;

    const std::vector<Pinned>& all() const { return m_all; }

    /// The baseline; null: none.
    const Pinned* current() const { return m_current < m_all.size() ? &m_all[m_current] : nullptr; }

    /// Pins a state and makes it the baseline; one that is pinned becomes it only. Precondition: it was built or simulated.
    void pin(const std::shared_ptr<const sim::Analysis>& analysis, const QString& title);

    /// Pins what a file says and makes it the baseline, in the place of what was pinned of that file before.
    void pin(sim::Comparable result, const QString& title);

    /// Precondition: index < all().size().
    void setCurrent(std::size_t index);
    void remove(std::size_t index);

Q_SIGNALS:
    void changed();

private:
    std::vector<Pinned> m_all;
    std::size_t m_current = 0;
    int m_count = 0; ///< that were ever pinned
};

} // namespace meshwright::ui
