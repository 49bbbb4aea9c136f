#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The check must be able to fail: one bad source of each kind in a tree of its own, with the real tables."""
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import check_sources  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
APACHE = "// SPDX-License-Identifier: Apache-2.0\n"
GPL = "// SPDX-License-Identifier: GPL-3.0-or-later\n"


class CheckSources(unittest.TestCase):
    def problems(self, **files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "docs").mkdir()
            shutil.copy(ROOT / "docs/architecture.md", root / "docs")
            for name, text in files["files"].items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return list(check_sources.check(root))

    def one(self, name, text):
        found = self.problems(files={name: text})
        self.assertEqual(len(found), 1, found)
        return found[0]

    def none(self, name, text):
        self.assertEqual(self.problems(files={name: text}), [])

    def test_an_arrow_back_up(self):
        self.assertEqual(self.one("core/config/a.cpp", APACHE + '\n#include "core/shapes/model_shape.h"\n'),
                         "core/config/a.cpp:3: core/config may not include core/shapes (core/shapes/model_shape.h)")
        self.assertIn("may not include ui/common", self.one("profiler/store/a.h", APACHE + '#include "ui/common/page.h"\n'))
        self.assertIn("may not include core/engine", self.one("ui/monitor/a.h", GPL + '#include "core/engine/engine.h"\n'))
        self.assertIn("may not include core/model", self.one("core/model/kernels/a.h", APACHE + '#include "core/model/decoder.h"\n'))
        self.assertIn("may not include ui/common", self.one("app/cli/a.h", APACHE + '#include "ui/common/page.h"\n'))

    def test_what_the_table_allows(self):
        self.none("core/shapes/a.cpp", APACHE + '#include "core/config/check.h"\n#include <vector>\n')
        self.none("ui/monitor/a.cpp", GPL + '#include "ui/common/page.h"\n#include <QWidget>\n')
        self.none("app/gui/a.cpp", GPL + '#include "ui/common/page.h"\n')
        self.none("core/engine/a.cpp", APACHE + '#include <ATen/ATen.h>\n#include "core/model/kernels/k.h"\n')
        self.none("tests/model/a.cpp", APACHE + '#include <torch/torch.h>\n#include "core/engine/engine.h"\n')

    def test_foreign_headers(self):
        self.assertIn("may not include <torch/torch.h>", self.one("core/data/a.cpp", APACHE + "#include <torch/torch.h>\n"))
        self.assertIn("may not include <c10/util/x.h>", self.one("profiler/collect/a.h", APACHE + "  # include <c10/util/x.h>\n"))
        self.assertIn("may not include <QString>", self.one("core/run/a.h", APACHE + "#include <QString>\n"))
        self.assertIn("may not include <QApplication>", self.one("core/launch/a.h", APACHE + "#include <QApplication>\n"))
        self.assertIn("may not include <sqlite3.h>", self.one("ui/common/a.h", GPL + "#include <sqlite3.h>\n"))

    def test_unknown_folders(self):
        self.assertIn("lies in no folder", self.one("core/zebra/a.h", APACHE))
        self.assertIn("lies in no folder", self.one("core/base/a.h", APACHE + '#include "core/zebra/b.h"\n'))

    def test_licences(self):
        self.assertIn("must say SPDX-License-Identifier: Apache-2.0", self.one("core/base/a.h", "#pragma once\n"))
        self.assertIn("must say SPDX-License-Identifier: GPL", self.one("ui/common/a.h", APACHE))
        self.assertIn("must say SPDX", self.one("core/base/a.h", "\n" + APACHE))
        self.assertIn("must say SPDX", self.one("core/base/CMakeLists.txt", "x()\n"))
        for name in ("packaging/a.toml", "packaging/a.txt", "profiler/store/a.cpp.in", ".clang-tidy"):
            self.assertIn("must say SPDX-License-Identifier: Apache-2.0", self.one(name, "x = 1\n"))
        self.assertIn("must say SPDX-License-Identifier: GPL", self.one("resources/icons.txt", "configure\n"))
        self.none("tests/analysis/golden/a.txt", "what it printed\n")
        self.none("packaging/a.sh", "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n")


if __name__ == "__main__":
    unittest.main()
