// Resolves a model's name on this machine; shared by the lookups of voices and of recognisers.
#pragma once

#include <string>

#include "base/result.h"
#include "store/paths.h"

namespace syrinx {

// Whether `model` is a path, if no model of that name is installed: it holds a '/' or '(', or a '.' that is not in a
// variant's name ("bird:0.6b"); or it is there.
bool names_path(const std::string& model);

// The folder of the installed model that is called so, whether it is there or not.  A name that stands for one of
// several variants ("pocket-tts") leads to that one's folder.
std::string installed_folder(const std::string& name, const std::string& models_folder);

// The entry's name for an alias of the catalogue.  Other names stay, as does one that a path or an installed model has.
std::string resolved_name(const std::string& name, const std::string& models_folder);

// kNotFound with the way to get it, or to the names that there are.
tl::unexpected<Error> not_installed(const std::string& name);

// Where what is packed from a checkpoint is kept: packed/FOLDER for an installed model, so that `syrinx rm` finds it by
// the folder's name, packed/files for one that was given as a path.
std::string packed_folder_of(const UserPaths& paths, const std::string& checkpoint, bool is_path);

}  // namespace syrinx
