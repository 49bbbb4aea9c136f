// SPDX-License-Identifier: Apache-2.0
#include "core/run/user_notes.h"

#include "core/base/file.h"
#include "core/run/json_access.h"

using nlohmann::json;

namespace shardscope::run {

static Result<json> readObject(const RunFolder &folder)
{
    std::error_code error;
    if (!std::filesystem::exists(folder.userFile(), error))
        return json::object();
    const auto text = readTextFile(folder.userFile());
    if (!text)
        return tl::unexpected(text.error());
    return parseObject(*text, folder.userFile().string());
}

Result<UserNotes> readUserNotes(const RunFolder &folder)
{
    const auto object = readObject(folder);
    if (!object)
        return tl::unexpected(object.error());
    UserNotes notes;
    take(*object, "shown_name", notes.shownName);
    take(*object, "notes", notes.notes);
    if (const auto tags = object->find("tags"); tags != object->end() && tags->is_array()) {
        for (const json &tag : *tags) {
            if (tag.is_string())
                notes.tags.push_back(tag.get<std::string>());
        }
    }
    return notes;
}

Result<> writeUserNotes(const RunFolder &folder, const UserNotes &notes)
{
    auto object = readObject(folder);
    if (!object)
        return tl::unexpected(object.error());
    (*object)["shown_name"] = notes.shownName;
    (*object)["notes"] = notes.notes;
    (*object)["tags"] = notes.tags;
    return writeFileAtomically(folder.userFile(), dump(*object, 2) + "\n");
}

} // namespace shardscope::run
