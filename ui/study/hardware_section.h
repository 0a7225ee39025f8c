// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/study/section.h"

class QComboBox;
class QSpinBox;
class QStandardItemModel;

namespace meshwright::ui {

class Field;
class ToneLabel;
class ValueEdit;

/// The chip, found by any of its names, and how many there are: a topology for a torus, and how many such slices; hosts for GPUs.
class HardwareSection : public Section {
    Q_OBJECT

public:
    explicit HardwareSection(const sim::Catalogue& catalogue, QWidget* parent = nullptr);

    void show(const std::shared_ptr<const StudyFacts>& facts) override;
    bool focusField(const QString& path) override;

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void fillChips();
    void showChip();
    void showCounts();
    void chooseChip(const QString& name);
    bool isTyped() const;
    void takeTyped();
    void finishTyping();
    void commitTopology(const QString& text);
    void commitSlices();
    void commitHosts();
    QString topologyProblem(const QString& text) const;
    sim::HardwareChoice choice() const;

    const sim::Catalogue& m_catalogue;
    std::shared_ptr<const StudyFacts> m_facts;
    QComboBox* m_chip;
    QString m_shown; ///< the text of the study's chip
    QStandardItemModel* m_names; ///< every key and alias, for finding
    Field* m_chipField;
    ValueEdit* m_topology;
    QSpinBox* m_slices;
    Field* m_topologyField;
    QSpinBox* m_hosts;
    QSpinBox* m_perHost;
    Field* m_hostsField;
    ToneLabel* m_profile;
};

} // namespace meshwright::ui
