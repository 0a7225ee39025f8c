// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/recovery.h"

#include "core/support/file.h"
#include "ui/models/study_document.h"

#include <QCoreApplication>
#include <QDir>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QUuid>

namespace meshwright::ui {

namespace {

QString lockOf(const QString& file)
{
    return file + QStringLiteral(".lock");
}

QJsonArray listOf(const std::vector<std::string>& texts)
{
    QJsonArray list;
    for (const std::string& text : texts)
        list.append(QString::fromStdString(text));
    return list;
}

std::vector<std::string> textsOf(const QJsonValue& list)
{
    std::vector<std::string> texts;
    for (const QJsonValue& text : list.toArray())
        texts.push_back(text.toString().toStdString());
    return texts;
}

QByteArray written(const UnsavedWork& work)
{
    QJsonObject json;
    if (const auto* study = std::get_if<EditedStudy>(&work)) {
        json = {{"text", QString::fromStdString(study->source.text)}, {"file", QString::fromStdString(study->source.file)},
            {"settings", listOf(study->source.settings)}, {"path", study->path}};
    } else {
        const auto& page = std::get<EditedPage>(work);
        json = {{"page", QString::fromStdString(page.text)}, {"cells", listOf(page.sources)}, {"path", page.path}};
    }
    return QJsonDocument(json).toJson();
}

std::optional<UnsavedWork> read(const QString& file)
{
    const auto bytes = readFile(file.toStdString());
    if (!bytes)
        return std::nullopt;
    const QJsonObject json = QJsonDocument::fromJson(QByteArray::fromStdString(*bytes)).object();
    if (json["page"].isString())
        return EditedPage{json["path"].toString(), json["page"].toString().toStdString(), textsOf(json["cells"])};
    if (!json["text"].isString())
        return std::nullopt;
    return EditedStudy{{json["text"].toString().toStdString(), json["file"].toString().toStdString(), textsOf(json["settings"])},
        json["path"].toString()};
}

} // namespace

QString Recovery::defaultFolder()
{
    const QString state = qEnvironmentVariable("XDG_STATE_HOME", QDir::homePath() + QStringLiteral("/.local/state"));
    return state + QStringLiteral("/meshwright/recovery");
}

Recovery::Recovery(Unsaved unsaved, const QString& folder, QObject* parent)
    : QObject(parent)
    , m_unsaved(std::move(unsaved))
    , m_file(folder + QLatin1Char('/') + QUuid::createUuid().toString(QUuid::WithoutBraces) + QStringLiteral(".json"))
    , m_lock(lockOf(m_file))
{
    QDir().mkpath(folder);
    m_lock.setStaleLockTime(0);
    m_lock.tryLock();
    m_timer.setSingleShot(true);
    m_timer.setInterval(kDelayMilliseconds);
    connect(&m_timer, &QTimer::timeout, this, &Recovery::store);
}

Recovery::Recovery(StudyDocument& document, const QString& folder, QObject* parent)
    : Recovery(
        [&document]() -> std::optional<UnsavedWork> {
            return document.isModified() ? std::optional(EditedStudy{document.source(), document.path()}) : std::nullopt;
        },
        folder, parent)
{
    connect(&document, &StudyDocument::sourceChanged, this, &Recovery::edited);
    connect(&document, &StudyDocument::modifiedChanged, this, &Recovery::edited);
}

Recovery::~Recovery()
{
    discard();
}

void Recovery::edited()
{
    m_unsaved() ? m_timer.start() : discard();
}

void Recovery::store()
{
    m_timer.stop();
    // Without a place to write there is no copy; the user's work goes on all the same.
    if (const auto work = m_unsaved())
        (void)writeFileAtomically(m_file.toStdString(), written(*work).toStdString()).has_value();
}

void Recovery::discard()
{
    m_timer.stop();
    QFile::remove(m_file);
}

std::vector<RecoveredWork> Recovery::leftBehind(const QString& folder)
{
    std::vector<RecoveredWork> all;
    for (const QString& name : QDir(folder).entryList({QStringLiteral("*.json")}, QDir::Files, QDir::Time)) {
        const QString file = QDir(folder).filePath(name);
        auto lock = std::make_shared<QLockFile>(lockOf(file));
        lock->setStaleLockTime(0);
        if (!lock->tryLock(0))
            continue; // its program is running, or another one asks about it
        if (auto work = read(file))
            all.push_back({*std::move(work), file, std::move(lock)});
    }
    return all;
}

QString RecoveredWork::path() const
{
    return std::visit([](const auto& edited) { return edited.path; }, work);
}

void RecoveredWork::forget() const
{
    QFile::remove(copy);
}

} // namespace meshwright::ui

#include "moc_recovery.cpp"
