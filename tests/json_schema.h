// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QString>
#include <QStringList>

#include <cmath>

/// As much of JSON Schema as resources/schemas use: type, const, enum, minimum, required, properties, additionalProperties (false), items.
namespace meshwright::tests {

inline bool hasJsonType(const QJsonValue& value, const QString& type)
{
    if (type == "integer")
        return value.isDouble() && std::floor(value.toDouble()) == value.toDouble();
    return (type == "object" && value.isObject()) || (type == "array" && value.isArray())
        || (type == "string" && value.isString()) || (type == "number" && value.isDouble())
        || (type == "boolean" && value.isBool()) || (type == "null" && value.isNull());
}

/// What is wrong with `value`, a line each: `problems[0].line: not of type integer`.
inline QStringList schemaErrors(const QJsonValue& value, const QJsonObject& schema, const QString& path = "$")
{
    QStringList errors;
    if (schema.contains("type")) {
        const QJsonValue type = schema["type"];
        bool fits = type.isString() && hasJsonType(value, type.toString());
        for (const auto& one : type.toArray())
            fits = fits || hasJsonType(value, one.toString());
        if (!fits)
            return {path + ": not of its type"};
    }
    if (schema.contains("const") && value != schema["const"])
        errors << path + ": not the constant";
    if (schema.contains("enum") && !schema["enum"].toArray().contains(value))
        errors << path + ": not one of the enumeration";
    if (schema.contains("minimum") && value.toDouble() < schema["minimum"].toDouble())
        errors << path + ": below the minimum";
    if (value.isObject()) {
        const QJsonObject object = value.toObject();
        const QJsonObject properties = schema["properties"].toObject();
        for (const auto& name : schema["required"].toArray()) {
            if (!object.contains(name.toString()))
                errors << path + '.' + name.toString() + ": missing";
        }
        for (auto member = object.begin(); member != object.end(); ++member) {
            if (properties.contains(member.key()))
                errors << schemaErrors(member.value(), properties[member.key()].toObject(), path + '.' + member.key());
            else if (schema["additionalProperties"].isBool() && !schema["additionalProperties"].toBool())
                errors << path + '.' + member.key() + ": unknown";
        }
    }
    if (value.isArray() && schema.contains("items")) {
        const QJsonArray array = value.toArray();
        for (int i = 0; i < array.size(); ++i)
            errors << schemaErrors(array[i], schema["items"].toObject(), QString("%1[%2]").arg(path).arg(i));
    }
    return errors;
}

/// What is wrong with a result, by the schema that it names ("meshwright.layout/1" is resources/schemas/layout-1.json); empty when it is valid.
inline QString resultErrors(const QByteArray& json)
{
    QJsonParseError error;
    const QJsonDocument document = QJsonDocument::fromJson(json, &error);
    if (document.isNull())
        return "not JSON: " + error.errorString();
    const QString name = document["schema"].toString();
    QFile file(QString(MESHWRIGHT_SOURCE_DIR) + "/resources/schemas/" + name.mid(QString("meshwright.").size()).replace('/', '-')
        + ".json");
    if (!file.open(QIODevice::ReadOnly))
        return "no schema for \"" + name + '"';
    const QJsonDocument schema = QJsonDocument::fromJson(file.readAll(), &error);
    if (schema.isNull())
        return "the schema is not JSON: " + error.errorString();
    return schemaErrors(document.object(), schema.object()).join('\n');
}

} // namespace meshwright::tests
