// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/training/training_view.h"

#include "core/draw/draw_curves.h"
#include "core/draw/quantity.h"
#include "core/support/counted.h"
#include "core/support/text.h"
#include "sim/session/analysis_state.h"
#include "ui/training/curve_plot.h"
#include "ui/training/figures.h"

#include <QAction>
#include <QBoxLayout>
#include <QCheckBox>
#include <QComboBox>
#include <QFileDialog>
#include <QIcon>
#include <QLabel>
#include <QLocale>
#include <QMenu>
#include <QPainter>
#include <QProgressBar>
#include <QPushButton>
#include <QSpinBox>
#include <QStackedWidget>

#include <cmath>
#include <numeric>

namespace meshwright::ui {

using sim::TrainingState;

namespace {

constexpr int kMostSteps = 100'000'000;

// The panels of the plot and their lines.
enum Panel : std::size_t { kLoss, kDifference, kAccuracy };
enum Line : std::size_t { kSharded, kOneDevice, kHeldOut };

constexpr ColourRole kShardedRole = ColourRole::Compute;
constexpr ColourRole kOneDeviceRole = ColourRole::AllReduce;
constexpr ColourRole kDifferenceRole = ColourRole::ReduceScatter;
constexpr ColourRole kHeldOutRole = ColourRole::MutedText;

QString text(const std::string& words)
{
    return QString::fromStdString(words);
}

QString plain(double value)
{
    return text(quantityText(value, Quantity::Plain));
}

QString percent(double share)
{
    return QStringLiteral("%1 %").arg(100.0 * share, 0, 'f', 1);
}

QString count(std::int64_t number)
{
    return QLocale::c().toString(static_cast<qlonglong>(number)).replace(QLatin1Char(','), QChar(0x2009)); // a thin space
}

enum class Glyph : std::uint8_t { Play, Bars, Square };

/// A sign for a button, in the colour of its text.
QIcon glyphIcon(Glyph glyph, const QPalette& palette)
{
    constexpr int kSize = 16;
    constexpr int kScale = 4; // sharp on every screen
    QIcon icon;
    for (const auto& [mode, group] :
        {std::pair(QIcon::Normal, QPalette::Active), std::pair(QIcon::Disabled, QPalette::Disabled)}) {
        QPixmap pixmap(kSize * kScale, kSize * kScale);
        pixmap.fill(Qt::transparent);
        QPainter painter(&pixmap);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.scale(kScale, kScale);
        painter.setPen(Qt::NoPen);
        painter.setBrush(palette.color(group, QPalette::ButtonText));
        switch (glyph) {
        case Glyph::Play:
            painter.drawPolygon(QPolygonF({{4, 2.5}, {4, 13.5}, {13.5, 8}}));
            break;
        case Glyph::Bars:
            painter.drawRect(QRectF(4, 3, 3, 10));
            painter.drawRect(QRectF(9, 3, 3, 10));
            break;
        case Glyph::Square:
            painter.drawRect(QRectF(3.5, 3.5, 9, 9));
            break;
        }
        painter.end();
        icon.addPixmap(pixmap, mode);
    }
    return icon;
}

std::vector<PlotPanel> panelsOfTraining()
{
    const QString sharded = QObject::tr("sharded");
    const QString oneDevice = QObject::tr("one device");
    return {
        {QObject::tr("loss"), PlotPanel::Scale::Linear, 3, Qt::TopRightCorner,
            {{sharded, kShardedRole, 6.0, false, true}, {oneDevice, kOneDeviceRole, 1.5, true}}},
        {QObject::tr("|difference|"), PlotPanel::Scale::Decades, 2, Qt::TopRightCorner,
            {{QString(), kDifferenceRole, 1.5, false, false, false, false}}},
        {QObject::tr("accuracy"), PlotPanel::Scale::Percent, 2, Qt::BottomRightCorner, // lines as in the loss
            {{sharded, kShardedRole, 6.0, false, true, false, false}, {oneDevice, kOneDeviceRole, 1.5, true, false, false, false},
                {QObject::tr("held-out examples, at the end"), kHeldOutRole, 1.5, true, false, true}}},
    };
}

std::int64_t stepsOf(const Study& study)
{
    if (study.phases.empty())
        return study.train.steps;
    return std::accumulate(study.phases.begin(), study.phases.end(), std::int64_t{0},
        [](std::int64_t sum, const StudyPhase& phase) { return sum + phase.steps; });
}

/// "message. fix", for people; the id is for looking it up.
QString problemHtml(const Problem& problem, const QColor& colour)
{
    QString message = text(problem.message);
    message.replace(0, 1, message.left(1).toUpper());
    QString html = QStringLiteral("<span style=\"color:%1\">%2</span>").arg(colour.name(), message.toHtmlEscaped());
    if (!problem.fix.empty())
        html += QStringLiteral(": ") + text(problem.fix).toHtmlEscaped();
    return html + QStringLiteral(" (%1)").arg(text(problem.id));
}

} // namespace

TrainingView::TrainingView(Selection& selection, QWidget* parent)
    : View(parent)
    , m_selection(selection)
    , m_train(new QPushButton(tr("Train"), this))
    , m_pause(new QPushButton(tr("Pause"), this))
    , m_resume(new QPushButton(tr("Resume"), this))
    , m_pauseOrResume(new QStackedWidget(this))
    , m_cancel(new QPushButton(tr("Cancel"), this))
    , m_steps(new QSpinBox(this))
    , m_beside(new QCheckBox(tr("Compare with one device"), this))
    , m_verify(new QCheckBox(tr("Verify"), this))
    , m_fault(new QComboBox(this))
    , m_checkpoints(new QPushButton(tr("Checkpoints"), this))
    , m_bar(new QProgressBar(this))
    , m_status(new QLabel(this))
    , m_pace(new QLabel(this))
    , m_messages(new QLabel(this))
    , m_plot(new CurvePlot(panelsOfTraining(), this))
    , m_marked(new QLabel(this))
    , m_figures(new Figures(this))
{
    m_messages->setTextFormat(Qt::RichText);
    m_messages->setWordWrap(true);
    m_messages->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_messages->setAccessibleName(tr("Messages of the training"));
    m_plot->setAccessibleName(tr("Loss, difference and accuracy over the steps"));
    m_marked->setTextFormat(Qt::PlainText);
    m_marked->setAccessibleName(tr("Values at the marked step"));
    m_marked->setFont(tabularFont(font()));
    m_marked->setMinimumWidth(1); // it never makes the view wider
    m_figures->setAccessibleName(tr("Figures of the training"));

    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 8, 8, 8);
    layout->setSpacing(6);
    layout->addLayout(makeControls());
    layout->addLayout(makeProgress());
    layout->addWidget(m_messages);
    layout->addWidget(m_plot, 1);
    layout->addWidget(m_marked);
    layout->addWidget(m_figures);

    connect(m_plot, &CurvePlot::stepMarked, this, &TrainingView::showMarkedStep);
    connect(&m_job, &TrainingJob::started, this, [this] {
        showControls();
        showProgress();
        showMessages();
        showCurves();
        showFigures();
    });
    connect(&m_job, &TrainingJob::progressed, this, [this] {
        showControls();
        showProgress();
        showMessages();
        // What takes long with very many steps is done less often, so that the window has most of the time.
        if (!m_job.isActive() || !m_sinceCurves.isValid() || m_sinceCurves.elapsed() >= 4 * m_curvesTook) {
            showCurves();
            showFigures();
        }
    });
    connect(&m_job, &TrainingJob::finished, this, &TrainingView::runEnded);

    showIcons();
    showControls();
    showProgress();
    showMessages();
    showCurves();
    showMarkedStep(-1);
    showFigures();
}

QLayout* TrainingView::makeControls()
{
    for (QPushButton* button : {m_train, m_pause, m_resume, m_cancel})
        button->setMinimumWidth(std::max({m_train->sizeHint().width(), m_pause->sizeHint().width(), m_resume->sizeHint().width(),
                                    m_cancel->sizeHint().width()})
            + 16);
    m_train->setToolTip(tr("Trains the study on virtual devices, one thread for each"));
    m_pause->setToolTip(tr("Stops after the current step"));
    m_resume->setToolTip(tr("Continues the paused run"));
    m_cancel->setToolTip(tr("Stops the run; its results stay on screen"));
    m_steps->setRange(0, kMostSteps);
    m_steps->setGroupSeparatorShown(true);
    m_steps->setAccelerated(true);
    m_steps->setAccessibleName(tr("Steps"));
    m_beside->setChecked(true);
    m_beside->setToolTip(
        tr("Trains the same study on one device too, from the same initial values, so that the losses can be compared. "
           "The two take turns: samples/s are those of the sharded run alone"));
    m_verify->setToolTip(tr("Checks four steps, array by array, against one device and against double precision"));

    m_fault->setAccessibleName(tr("Fault"));
    m_fault->setToolTip(
        tr("A fault on the selected device, or on device 0. A slow device is slow in every step; the other faults come halfway. "
           "The timeline shows which devices wait"));
    for (const auto& [words, form] : {std::pair{tr("No fault"), ""}, std::pair{tr("Slow device"), "slow:device=%1,factor=3"},
             std::pair{tr("Device fails"), "fail:device=%1,step=%2"}, std::pair{tr("Value is NaN"), "nan:device=%1,step=%2"},
             std::pair{tr("Out of memory"), "memory:device=%1,step=%2"}})
        m_fault->addItem(words, QString::fromLatin1(form));
    makeCheckpoints();
    connect(m_train, &QPushButton::clicked, this, &TrainingView::train);
    connect(m_pause, &QPushButton::clicked, &m_job, &TrainingJob::pause);
    connect(m_resume, &QPushButton::clicked, &m_job, &TrainingJob::resume);
    connect(m_cancel, &QPushButton::clicked, &m_job, &TrainingJob::cancel);

    auto* stepsLabel = new QLabel(tr("&Steps"), this);
    stepsLabel->setBuddy(m_steps);
    auto* row = new QHBoxLayout;
    row->setSpacing(6);
    m_pauseOrResume->setMinimumWidth(m_pause->minimumWidth()); // a stack asks its pages for their hints only
    m_pauseOrResume->setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
    m_pauseOrResume->addWidget(m_pause);
    m_pauseOrResume->addWidget(m_resume);
    row->addWidget(m_train);
    row->addWidget(m_pauseOrResume);
    row->addWidget(m_cancel);
    row->addSpacing(10);
    row->addWidget(stepsLabel);
    row->addWidget(m_steps);
    row->addSpacing(10);
    row->addWidget(m_beside);
    row->addSpacing(4);
    row->addWidget(m_verify);
    row->addSpacing(4);
    row->addWidget(m_fault);
    row->addStretch(1);
    return row;
}

QLayout* TrainingView::makeProgress()
{
    m_bar->setRange(0, 1000);
    m_bar->setTextVisible(false);
    m_bar->setFixedHeight(8);
    m_bar->setAccessibleName(tr("Progress of the training"));
    m_status->setFont(tabularFont(font()));
    m_pace->setFont(tabularFont(font()));
    auto* row = new QHBoxLayout;
    row->setSpacing(10);
    row->addWidget(m_status);
    row->addWidget(m_bar, 1);
    row->addWidget(m_pace);
    row->addWidget(m_checkpoints);
    return row;
}

void TrainingView::makeCheckpoints()
{
    auto* menu = new QMenu(m_checkpoints);
    m_keeps = menu->addAction(tr("&Keep checkpoints in a folder…"));
    m_keeps->setCheckable(true);
    connect(m_keeps, &QAction::triggered, this, [this](bool keeps) {
        keepCheckpoints(keeps ? QFileDialog::getExistingDirectory(this, tr("Folder of the checkpoints")) : QString());
    });
    menu->addSeparator();
    m_goesOnFromLast = menu->addAction(tr("&Resume from the last one"), this, [this] { goOnFrom(m_lastCheckpoint); });
    m_goesOn = menu->addAction(tr("Resume &from a checkpoint…"), this, [this] {
        const QString chosen
            = QFileDialog::getExistingDirectory(this, tr("Checkpoint, or folder of checkpoints"), m_checkpointFolder);
        if (!chosen.isEmpty())
            goOnFrom(chosen);
    });
    menu->setToolTipsVisible(true);
    m_goesOn->setToolTip(tr("The checkpoint may be of another mesh"));
    m_checkpoints->setToolTip(tr("Saves checkpoints of the training, and resumes from one"));
    m_checkpoints->setMenu(menu);
}

void TrainingView::keepCheckpoints(const QString& folder)
{
    m_checkpointFolder = folder;
    m_keeps->setChecked(!folder.isEmpty());
    m_keeps->setToolTip(folder);
}

std::int64_t TrainingView::stepsBetweenCheckpoints() const
{
    constexpr std::int64_t kOfARun = 10;
    return std::max<std::int64_t>(1, (hasPhases() ? m_studySteps : m_steps->value()) / kOfARun);
}

void TrainingView::setAnalysis(std::shared_ptr<const sim::Analysis> analysis)
{
    m_analysis = std::move(analysis);
    if (m_analysis->study != nullptr) {
        const std::int64_t steps = stepsOf(*m_analysis->study);
        if (steps != m_studySteps)
            m_steps->setValue(static_cast<int>(std::min<std::int64_t>(steps, kMostSteps)));
        m_studySteps = steps;
    }
    showControls();
    showMessages();
    showCurves();
}

/// A run that is under way goes on, and is not lost.
void TrainingView::forgetStudy()
{
    m_analysis.reset();
    m_studySteps = -1; // those of the next study are taken
    m_runIsOfAnother = m_job.isActive();
    if (!m_runIsOfAnother) {
        m_job.forget();
        m_resumed.clear();
        m_lastCheckpoint.clear();
    }
    showControls();
    showProgress();
    showMessages();
    showCurves();
    showFigures();
}

bool TrainingView::isTrainable() const
{
    return m_analysis != nullptr && m_analysis->built != nullptr && m_analysis->study->trains();
}

bool TrainingView::hasPhases() const
{
    return m_analysis != nullptr && m_analysis->study != nullptr && !m_analysis->study->phases.empty();
}

/// The file's name is not a part of it: saving elsewhere changes nothing.
bool TrainingView::isStale() const
{
    return m_job.hasRun() && m_analysis != nullptr
        && (m_analysis->source.text != m_runSource.text || m_analysis->source.settings != m_runSource.settings);
}

void TrainingView::train()
{
    start({});
}

void TrainingView::goOnFrom(const QString& checkpoint)
{
    start(checkpoint);
}

void TrainingView::start(const QString& checkpoint)
{
    if (!isTrainable() || m_job.isActive())
        return;
    Study study = *m_analysis->study;
    if (study.phases.empty())
        study.train.steps = m_steps->value();
    m_runSource = m_analysis->source;
    m_runIsOfAnother = false;
    sim::TrainingRunOptions options;
    options.besideOneDevice = m_beside->isChecked();
    options.verify = m_verify->isChecked();
    if (!fault().isEmpty())
        options.faults.injected = {valueOf(parseInjectedFault(fault().toStdString()))};
    if (!m_checkpointFolder.isEmpty())
        options.checkpoints = CheckpointPlan{m_checkpointFolder.toStdString(), stepsBetweenCheckpoints()};
    options.resume = checkpoint.toStdString();
    m_resumed = checkpoint;
    m_job.start(std::make_shared<const Study>(std::move(study)), options);
}

QString TrainingView::fault() const
{
    const DeviceId device = m_selection.devices().empty() ? 0 : *m_selection.devices().begin();
    const std::int64_t steps = hasPhases() ? m_studySteps : m_steps->value();
    return m_fault->currentData()
        .toString()
        .replace(QStringLiteral("%1"), QString::number(device))
        .replace(QStringLiteral("%2"), QString::number(steps / 2));
}

void TrainingView::runEnded(const std::shared_ptr<const TrainingResult>& result)
{
    if (result != nullptr && result->checkpoint)
        m_lastCheckpoint = text(result->checkpoint->string());
    showControls();
    showMessages();
    if (result != nullptr && !result->accuracies.empty() && !m_runIsOfAnother)
        Q_EMIT trained(result);
}

void TrainingView::showControls()
{
    const bool active = m_job.isActive();
    const TrainingState state = m_job.snapshot().state;
    const bool cancelling = state == TrainingState::Cancelling;
    const bool pausing = active && (state == TrainingState::Pausing || state == TrainingState::Paused);
    const std::array<std::pair<QPushButton*, bool>, 4> buttons
        = {std::pair(m_train, !active && isTrainable()), std::pair(m_pause, active && !cancelling && !pausing),
            std::pair(m_resume, active && !cancelling && pausing), std::pair(m_cancel, active)};
    const auto focused = std::find_if(buttons.begin(), buttons.end(), [](const auto& entry) { return entry.first->hasFocus(); });
    for (const auto& [button, enabled] : buttons) {
        if (enabled)
            button->setEnabled(true);
    }
    m_pauseOrResume->setCurrentWidget(pausing ? m_resume : m_pause);
    if (focused != buttons.end() && !focused->second) { // the focus goes on to what can be done next, rather than anywhere
        const auto next = std::find_if(buttons.begin(), buttons.end(), [](const auto& entry) { return entry.second; });
        if (next != buttons.end())
            next->first->setFocus();
    }
    for (const auto& [button, enabled] : buttons)
        button->setEnabled(enabled);
    m_steps->setEnabled(!active && !hasPhases());
    m_steps->setToolTip(hasPhases() ? tr("The phases of the study say how many steps each has") : tr("How many steps to train"));
    m_beside->setEnabled(!active);
    m_verify->setEnabled(!active);
    m_fault->setEnabled(!active);
    m_keeps->setEnabled(!active);
    m_goesOn->setEnabled(!active && isTrainable());
    m_goesOnFromLast->setEnabled(!active && isTrainable() && !m_lastCheckpoint.isEmpty());
    m_goesOnFromLast->setToolTip(m_lastCheckpoint);
}

void TrainingView::showProgress()
{
    const sim::TrainingSnapshot& now = m_job.snapshot();
    const QString step = count(now.step);
    const QString steps = text(counted(now.steps, "step"));
    QString status;
    switch (now.state) {
    case TrainingState::Preparing:
        status = m_job.hasRun() ? tr("Preparing …") : tr("Not trained yet");
        break;
    case TrainingState::Running:
        status = tr("Step %1 of %2").arg(step, count(now.steps));
        break;
    case TrainingState::Pausing:
        status = tr("Pausing after this step …");
        break;
    case TrainingState::Paused:
        status = tr("Paused after step %1 of %2").arg(step, count(now.steps));
        break;
    case TrainingState::Cancelling:
        status = tr("Cancelling …");
        break;
    case TrainingState::Finished:
        status = tr("Finished: %1 in %2").arg(steps, text(formatSeconds(now.elapsedSeconds)));
        break;
    case TrainingState::Cancelled:
        status = tr("Cancelled after %1 of %2").arg(step, steps);
        break;
    case TrainingState::Failed:
        status = now.step > 0 ? tr("Failed after %1 of %2").arg(step, steps) : tr("Failed");
        break;
    }
    m_status->setText(status);
    QStringList pace;
    if (now.secondsLeft > 0.0)
        pace << tr("about %1 left").arg(text(formatSeconds(now.secondsLeft)));
    if (now.samplesPerSecond > 0.0)
        pace << tr("%1 samples/s").arg(text(formatCount(now.samplesPerSecond)));
    m_pace->setText(pace.join(QStringLiteral(" · ")));
    m_bar->setValue(now.steps == 0 ? 0 : static_cast<int>(1000 * now.step / now.steps));
}

void TrainingView::showMessages()
{
    QStringList lines;
    for (const Problem& problem : m_job.snapshot().problems)
        lines << problemHtml(problem, colour(problem.severity == Severity::Error ? ColourRole::Error : ColourRole::Warning));
    if (!m_resumed.isEmpty() && m_job.snapshot().firstStep > 0)
        lines << tr("Resumed after step %1 of %2. Steps before it are not compared.")
                     .arg(count(m_job.snapshot().firstStep), m_resumed.toHtmlEscaped());
    if (const auto result = m_job.result(); result != nullptr && result->checkpoint)
        lines << tr("The last checkpoint: %1").arg(text(result->checkpoint->string()).toHtmlEscaped());
    if (isStale())
        lines << QStringLiteral("<span style=\"color:%1\">%2</span>")
                     .arg(colour(ColourRole::Warning).name(),
                         m_runIsOfAnother ? tr("This run is of the study that was open before.")
                                          : tr("This run is of an earlier version of the study."));
    if (m_analysis != nullptr && m_analysis->study != nullptr && !m_analysis->study->trains()) {
        lines << problemHtml({"MW1733", "The study's model is a program file, which has no training",
                                 "use `meshwright run` for it, or choose an MLP as the model"},
            colour(ColourRole::Warning));
    } else if (m_analysis != nullptr && !isTrainable()) {
        const Problem* why = sim::whyNotBuilt(*m_analysis);
        lines << QStringLiteral("<span style=\"color:%1\">%2</span>")
                     .arg(colour(ColourRole::Error).name(), tr("The study has problems and cannot be trained as it is."));
        if (why != nullptr)
            lines << problemHtml(*why, colour(ColourRole::Error));
    }
    m_messages->setText(lines.join(QStringLiteral("<br>")));
    m_messages->setVisible(!lines.isEmpty());
}

std::vector<double> TrainingView::differences() const
{
    const sim::TrainingCurves& curves = m_job.curves();
    std::vector<double> differences;
    for (std::size_t i = 0; i < std::min(curves.loss.size(), curves.oneDeviceLoss.size()); ++i)
        differences.push_back(std::abs(curves.loss[i] - curves.oneDeviceLoss[i]));
    return differences;
}

void TrainingView::showCurves()
{
    m_sinceCurves.start();
    const sim::TrainingCurves& curves = m_job.curves();
    const auto result = m_job.result();
    m_plot->setSteps(m_job.snapshot().steps);
    std::vector<PlotMoment> moments;
    for (const LayoutSwitch& change : m_job.snapshot().layoutSwitches)
        moments.push_back({change.step, text(change.what)});
    m_plot->setMoments(std::move(moments));
    m_plot->setValues(kLoss, kSharded, curves.loss);
    m_plot->setValues(kLoss, kOneDevice, curves.oneDeviceLoss);
    m_plot->setValues(kDifference, kSharded, differences());
    m_plot->setValues(kAccuracy, kSharded, curves.accuracy);
    m_plot->setValues(kAccuracy, kOneDevice, curves.oneDeviceAccuracy);
    m_plot->setValues(kAccuracy, kHeldOut,
        result != nullptr && result->heldOutAccuracy ? std::vector<double>{*result->heldOutAccuracy} : std::vector<double>{});
    m_plot->setMessage(m_job.isActive() ? tr("The first step is running …")
            : isTrainable() ? tr("Train to see the loss of the sharded run beside that of the same training on one device")
                            : tr("Nothing to train"));
    m_curvesTook = m_sinceCurves.elapsed();
    showMarkedStep(m_plot->markedStep());
}

void TrainingView::showMarkedStep(qint64 step)
{
    m_marked->setVisible(!m_job.curves().loss.empty());
    if (step < 0) {
        m_marked->setText(tr("Point at a step to read its values. The wheel zooms, 0 shows all."));
        return;
    }
    const sim::TrainingCurves& curves = m_job.curves();
    const auto at = static_cast<std::size_t>(step);
    const auto number = [](double value) { return QString::number(value, 'g', 7); };
    QStringList parts;
    if (at < curves.loss.size())
        parts << tr("loss %1").arg(number(curves.loss[at]));
    if (at < curves.oneDeviceLoss.size()) {
        const double difference = std::abs(curves.loss[at] - curves.oneDeviceLoss[at]);
        if (std::isnan(difference)) {
            parts << tr("not compared: it is of the checkpoint");
        } else {
            parts << tr("one device %1").arg(number(curves.oneDeviceLoss[at]));
            parts << (difference == 0.0 ? tr("equal") : tr("difference %1").arg(plain(difference)));
        }
    }
    if (at < curves.accuracy.size())
        parts << tr("accuracy %1").arg(percent(curves.accuracy[at]));
    for (const LayoutSwitch& change : m_job.snapshot().layoutSwitches) {
        if (change.step == step)
            parts << text(change.what);
    }
    m_marked->setText(tr("Step %1: %2").arg(count(step), parts.join(QStringLiteral(", "))));
}

void TrainingView::showFigures()
{
    const sim::TrainingSnapshot& now = m_job.snapshot();
    const sim::TrainingCurves& curves = m_job.curves();
    const auto result = m_job.result();
    const bool isFinished = now.state == TrainingState::Finished;
    std::vector<Figure> figures;
    if (!curves.loss.empty()) {
        figures.push_back({isFinished ? tr("Final loss") : tr("Loss"), plain(curves.loss.back()),
            curves.oneDeviceLoss.size() == curves.loss.size() ? tr("one device %1").arg(plain(curves.oneDeviceLoss.back()))
                                                              : QString()});
    }
    std::vector<double> apart = differences();
    std::erase_if(apart, [](double difference) { return std::isnan(difference); });
    if (!apart.empty()) {
        const double largest = *std::max_element(apart.begin(), apart.end());
        figures.push_back({tr("Largest difference"), largest == 0.0 ? tr("equal") : plain(largest), tr("of the losses")});
    }
    if (!curves.accuracy.empty())
        figures.push_back({tr("Accuracy"), percent(curves.accuracy.back()), tr("of the last batch")});
    if (result != nullptr && result->heldOutAccuracy)
        figures.push_back({tr("Held-out accuracy"), percent(*result->heldOutAccuracy),
            tr("of %1").arg(text(counted(result->heldOutExamples, "example")))});
    if (now.samplesPerSecond > 0.0)
        figures.push_back({tr("Samples/s"), text(formatCount(now.samplesPerSecond)),
            result != nullptr
                ? tr("%1 a step on average").arg(text(formatSeconds(static_cast<double>(now.batch) / now.samplesPerSecond)))
                : tr("sharded run alone")});
    if (now.devices > 0)
        figures.push_back({tr("Memory a device"), text(formatBytes(static_cast<double>(now.stepArenaBytes))),
            tr("reserved in this run, %1").arg(text(counted(now.devices, "device")))});
    if (result != nullptr && result->verification && !result->verification->checkedSteps.empty()) {
        const Verification& verification = *result->verification;
        const QString checked = tr("%1 checked").arg(text(counted(verification.checkedSteps.size(), "step")));
        figures.push_back({tr("Verified"),
            verification.passed ? (verification.provesAnything() ? tr("equal") : tr("nothing proved")) : tr("DIFFERENT"), checked,
            !verification.passed});
    }
    m_figures->setFigures(std::move(figures));
    m_figures->setVisible(!m_figures->figures().empty());
}

void TrainingView::showIcons()
{
    m_train->setIcon(glyphIcon(Glyph::Play, palette()));
    m_pause->setIcon(glyphIcon(Glyph::Bars, palette()));
    m_resume->setIcon(glyphIcon(Glyph::Play, palette()));
    m_cancel->setIcon(glyphIcon(Glyph::Square, palette()));
    QPalette muted = palette();
    muted.setColor(QPalette::WindowText, colour(ColourRole::MutedText));
    m_marked->setPalette(muted);
    m_pace->setPalette(muted);
}

void TrainingView::changeEvent(QEvent* event)
{
    if (event->type() == QEvent::PaletteChange) {
        showIcons();
        showMessages();
    }
    View::changeEvent(event);
}

DisplayList TrainingView::picture() const
{
    constexpr double kWidth = 860.0;
    const sim::TrainingCurves& curves = m_job.curves();
    const auto curveOf = [](const QString& name, std::vector<double> values, ColourRole role, bool dashed = false) {
        std::vector<double> steps(values.size());
        std::iota(steps.begin(), steps.end(), 0.0);
        const auto first = std::find_if_not(values.begin(), values.end(), [](double value) { return std::isnan(value); });
        steps.erase(steps.begin(), steps.begin() + (first - values.begin()));
        values.erase(values.begin(), first);
        return Curve{name.toStdString(), std::move(steps), std::move(values), role, dashed};
    };
    const auto pairOf = [&](const std::vector<double>& sharded, const std::vector<double>& oneDevice) {
        std::vector<Curve> pair = {curveOf(tr("sharded"), sharded, kShardedRole)};
        if (!oneDevice.empty())
            pair.push_back(curveOf(tr("one device"), oneDevice, kOneDeviceRole, true));
        return pair;
    };

    CurvesDrawing loss;
    loss.title = tr("Loss").toStdString();
    loss.yTitle = tr("loss").toStdString();
    loss.curves = pairOf(curves.loss, curves.oneDeviceLoss);
    CurvesDrawing accuracy;
    accuracy.title = tr("Accuracy").toStdString();
    accuracy.yTitle = tr("share").toStdString();
    accuracy.curves = pairOf(curves.accuracy, curves.oneDeviceAccuracy);
    std::vector<CurvesDrawing> drawings = {std::move(loss)};
    if (std::vector<double> apart = differences(); !apart.empty()) {
        CurvesDrawing difference;
        difference.title = tr("Difference of the losses; no line where they are equal").toStdString();
        difference.yTitle = tr("|difference|").toStdString();
        difference.logarithmic = true;
        difference.curves = {curveOf(tr("|difference|"), std::move(apart), kDifferenceRole)};
        drawings.push_back(std::move(difference));
    }
    drawings.push_back(std::move(accuracy));

    DisplayList picture;
    picture.title = tr("Training").toStdString();
    picture.width = kWidth;
    for (CurvesDrawing& drawing : drawings) {
        drawing.xTitle = tr("step").toStdString();
        drawing.width = kWidth;
        drawing.height = 260.0;
        for (const LayoutSwitch& change : m_job.snapshot().layoutSwitches)
            drawing.marks.push_back({static_cast<double>(change.step), change.what});
        addMoved(picture, drawCurves(drawing), {0.0, picture.height});
        picture.height += drawing.height;
    }
    return picture;
}

QString TrainingView::command() const
{
    QString command = QStringLiteral("meshwright train ") + studyArguments(m_analysis ? m_analysis->source : sim::StudySource{});
    if (!hasPhases() && m_steps->value() != m_studySteps)
        command += QStringLiteral(" --set train.steps=%1").arg(m_steps->value());
    if (m_verify->isChecked())
        command += QStringLiteral(" --verify");
    if (!fault().isEmpty())
        command += QStringLiteral(" --inject ") + fault();
    if (!m_checkpointFolder.isEmpty())
        command
            += QStringLiteral(" --checkpoint %1 --every %2").arg(shellQuoted(m_checkpointFolder)).arg(stepsBetweenCheckpoints());
    if (!m_resumed.isEmpty())
        command += QStringLiteral(" --resume ") + shellQuoted(m_resumed);
    return command;
}

} // namespace meshwright::ui

#include "moc_training_view.cpp"
