// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/study/section.h"

class QPushButton;
class QSlider;

namespace meshwright::ui {

class AxisRow;
class Selection;
class ToneLabel;

/// The mesh: a row for each axis, a slider along all meshes of as many devices as the hardware has, and how the two compare.
class MeshSection : public Section {
    Q_OBJECT

public:
    explicit MeshSection(Selection& selection, QWidget* parent = nullptr);

    void show(const std::shared_ptr<const StudyFacts>& facts) override;
    bool focusField(const QString& path) override;

private:
    void showAxes();
    void showSlider();
    void showProduct();
    void moveTo(int index);
    void addAxis();
    QStringList toMesh(const std::vector<MeshAxis>& mesh) const;

    Selection& m_selection;
    std::shared_ptr<const StudyFacts> m_facts;
    QVBoxLayout* m_axes;
    std::vector<AxisRow*> m_rows;
    QPushButton* m_add;
    QWidget* m_sliderBox;
    QLabel* m_first;
    QLabel* m_last;
    QSlider* m_slider;
    ToneLabel* m_product;
    QPushButton* m_fix;
    ToneLabel* m_note; ///< what is wrong with the mesh as a whole
    std::vector<std::vector<MeshAxis>> m_meshes; ///< the slider's positions
    QString m_added; ///< the axis whose name is to be edited when it appears
};

} // namespace meshwright::ui
