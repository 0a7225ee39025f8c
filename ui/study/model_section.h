// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/study/section.h"

class QCheckBox;
class QComboBox;
class QLabel;

namespace meshwright::ui {

class Field;
class ToneLabel;
class ValueEdit;

/// What is trained: layers, batch, types, optimizer. Of a program file only its name.
class ModelSection : public Section {
    Q_OBJECT

public:
    explicit ModelSection(QWidget* parent = nullptr);

    void show(const std::shared_ptr<const StudyFacts>& facts) override;
    bool focusField(const QString& path) override;

private:
    /// What is typed or chosen for one path, and the line that it stands in.
    struct Editor {
        QString path;
        QWidget* widget;
        Field* field;
    };

    Field* addLine(const QString& label, QWidget* editor);
    void addEditor(const char* path, QWidget* widget, Field* field);
    void addText(const char* path, ValueEdit* editor, Field* field);
    void showMlp();
    void showOptimizer();
    void chooseOptimizer(const QString& kind);
    void setOptimizer(const Optimizer& optimizer);

    std::shared_ptr<const StudyFacts> m_facts;
    std::vector<Editor> m_editors;
    std::vector<Field*> m_lines;
    ToneLabel* m_program;
    ValueEdit* m_layers;
    QComboBox* m_activation;
    QCheckBox* m_bias;
    QComboBox* m_loss;
    ValueEdit* m_batch;
    ValueEdit* m_sequence;
    QComboBox* m_recompute;
    QComboBox* m_parameters;
    QComboBox* m_products;
    QComboBox* m_optimizer;
    ValueEdit* m_rate;
    ValueEdit* m_momentum;
    QLabel* m_momentumLabel;
    Field* m_batchLine;
    Field* m_typesLine = nullptr;
    Field* m_rateLine;
};

} // namespace meshwright::ui
