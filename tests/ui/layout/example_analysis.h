// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/file.h"
#include "core/support/resources.h"
#include "sim/session/session.h"

#include <QFile>
#include <QTemporaryDir>

/// Analyses to look at in tests.
namespace meshwright::tests {

inline std::shared_ptr<const sim::Analysis> analysisOf(const sim::StudySource& source)
{
    static sim::Session session(valueOf(sim::defaultCatalogue()));
    return session.analyse(source);
}

/// An example of the resources, with settings over it.
inline std::shared_ptr<const sim::Analysis> exampleAnalysis(const QString& name, std::vector<std::string> settings = {})
{
    const std::filesystem::path file = resourcesDirectory() / "examples" / (name.toStdString() + ".yaml");
    return analysisOf({*readFile(file), file.string(), std::move(settings)});
}

/// A program with a value `x` of a type ("4x6x8xf32") that lies under a sharding (`[{"a"}, {}, {"b"}]`) on a mesh ("a=2,b=2").
inline std::shared_ptr<const sim::Analysis> programAnalysis(const QString& mesh, const QString& type, const QString& sharding)
{
    const Mesh devices = valueOf(parseMesh(mesh.toStdString()));
    QStringList quoted;
    QStringList plain;
    for (const MeshAxis& axis : devices.axes()) {
        quoted << QStringLiteral("\"%1\"=%2").arg(QString::fromStdString(axis.name)).arg(axis.size);
        plain << QStringLiteral("%1: %2").arg(QString::fromStdString(axis.name)).arg(axis.size);
    }
    const QTemporaryDir folder;
    QFile program(folder.filePath(QStringLiteral("program.mlir")));
    program.open(QIODevice::WriteOnly);
    program.write(
        QStringLiteral("module @m {\n"
                       "  sdy.mesh @mesh = <[%1]>\n"
                       "  func.func public @main(%x: tensor<%2> {sdy.sharding = #sdy.sharding<@mesh, %3>}) -> tensor<%2> {\n"
                       "    %0 = stablehlo.negate %x : tensor<%2>\n"
                       "    return %0 : tensor<%2>\n"
                       "  }\n"
                       "}\n")
            .replace(QStringLiteral("%1"), quoted.join(QStringLiteral(", ")))
            .replace(QStringLiteral("%2"), type)
            .replace(QStringLiteral("%3"), sharding)
            .toUtf8());
    program.close();
    const QString text = QStringLiteral("meshwright: 1\nname: one array\nmesh: {%1}\nmodel: {program: program.mlir}\n");
    return analysisOf({text.arg(plain.join(QStringLiteral(", "))).toStdString(),
        folder.filePath(QStringLiteral("study.yaml")).toStdString(), {}});
}

/// The same with an array that does not divide, as values inside a program may be.
inline std::shared_ptr<const sim::Analysis> unevenAnalysis(const QString& mesh, Shape shape, const char* spec)
{
    const Mesh devices = valueOf(parseMesh(mesh.toStdString()));
    auto analysis = *programAnalysis(mesh, QStringLiteral("8xf32"), QStringLiteral("[{}]"));
    sim::ProgramArray& array = analysis.arrays.front();
    array.sharding = valueOf(toTensorSharding(valueOf(parseSpec(spec)), shape.size(), devices));
    array.type.shape = std::move(shape);
    array.spec = layoutText(array.sharding, devices);
    return std::make_shared<const sim::Analysis>(std::move(analysis));
}

} // namespace meshwright::tests
