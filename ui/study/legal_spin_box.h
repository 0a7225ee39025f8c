// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QSpinBox>

#include <cstdint>
#include <functional>
#include <vector>

namespace meshwright::ui {

/// A number with arrows that stop on legal values only. Any number can be typed; what is wrong with it is said at once.
///
/// Arrows and the wheel commit at once, typing with Return or on leaving. A refused number stays until it is fixed; Escape goes back.
class LegalSpinBox : public QSpinBox {
    Q_OBJECT

public:
    explicit LegalSpinBox(QWidget* parent = nullptr);

    /// Ascending.
    void setLegal(const std::vector<std::int64_t>& values);

    /// What is wrong with a value, and whether it may be had all the same.
    struct Verdict {
        QString problem;
        bool allowed = true;
    };
    using Check = std::function<Verdict(int value)>;
    void setCheck(Check check) { m_check = std::move(check); }

    /// The value that the document has now; never replaces what is being typed.
    void setDocumentValue(int value);

    void stepBy(int steps) override;

Q_SIGNALS:
    void problemChanged(const QString& problem);
    void committed(int value);

protected:
    StepEnabled stepEnabled() const override;
    void keyPressEvent(QKeyEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;

private:
    int typedValue() const;
    void check();
    void finish();
    void showDocumentValue();
    void setProblem(const QString& problem);

    std::vector<int> m_legal;
    Check m_check;
    int m_value = 1; ///< of the document
    bool m_typed = false;
    QString m_problem;
};

} // namespace meshwright::ui
