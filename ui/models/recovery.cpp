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

QByteArray written(const StudyDocument& document)
{
    const sim::StudySource& source = document.source();
    QJsonArray settings;
    for (const std::string& setting : source.settings)
        settings.append(QString::fromStdString(setting));
    return QJsonDocument(QJsonObject{{"text", QString::fromStdString(source.text)}, {"file", QString::fromStdString(source.file)},
                             {"settings", settings}, {"path", document.path()}})
        .toJson();
}

std::optional<RecoveredStudy> read(const QString& file)
{
    const auto bytes = readFile(file.toStdString());
    if (!bytes)
        return std::nullopt;
    const QJsonObject json = QJsonDocument::fromJson(QByteArray::fromStdString(*bytes)).object();
    if (!json["text"].isString())
        return std::nullopt;
    RecoveredStudy study{{json["text"].toString().toStdString(), json["file"].toString().toStdString(), {}},
        json["path"].toString(), file, nullptr};
    for (const QJsonValue& setting : json["settings"].toArray())
        study.source.settings.push_back(setting.toString().toStdString());
    return study;
}

} // namespace

QString Recovery::defaultFolder()
{
    const QString state = qEnvironmentVariable("XDG_STATE_HOME", QDir::homePath() + QStringLiteral("/.local/state"));
    return state + QStringLiteral("/meshwright/recovery");
}

Recovery::Recovery(StudyDocument& document, const QString& folder, QObject* parent)
    : QObject(parent)
    , m_document(document)
    , m_file(folder + QLatin1Char('/') + QUuid::createUuid().toString(QUuid::WithoutBraces) + QStringLiteral(".json"))
    , m_lock(lockOf(m_file))
{
    QDir().mkpath(folder);
    m_lock.setStaleLockTime(0);
    m_lock.tryLock();
    m_timer.setSingleShot(true);
    m_timer.setInterval(kDelayMilliseconds);
    connect(&m_timer, &QTimer::timeout, this, &Recovery::store);
    const auto edited = [this] { m_document.isModified() ? m_timer.start() : discard(); };
    connect(&document, &StudyDocument::sourceChanged, this, edited);
    connect(&document, &StudyDocument::modifiedChanged, this, edited);
}

Recovery::~Recovery()
{
    discard();
}

void Recovery::store()
{
    m_timer.stop();
    if (!m_document.isModified())
        return;
    // Without a place to write there is no copy; the user's work goes on all the same.
    (void)writeFileAtomically(m_file.toStdString(), written(m_document).toStdString()).has_value();
}

void Recovery::discard()
{
    m_timer.stop();
    QFile::remove(m_file);
}

std::vector<RecoveredStudy> Recovery::leftBehind(const QString& folder)
{
    std::vector<RecoveredStudy> studies;
    for (const QString& name : QDir(folder).entryList({QStringLiteral("*.json")}, QDir::Files, QDir::Time)) {
        const QString file = QDir(folder).filePath(name);
        auto lock = std::make_shared<QLockFile>(lockOf(file));
        lock->setStaleLockTime(0);
        if (!lock->tryLock(0))
            continue; // its program is running, or another one asks about it
        if (auto study = read(file)) {
            study->lock = std::move(lock);
            studies.push_back(*std::move(study));
        }
    }
    return studies;
}

void RecoveredStudy::forget() const
{
    QFile::remove(copy);
}

} // namespace meshwright::ui
