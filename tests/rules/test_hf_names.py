"""What the rules write, and advise, of the Hugging Face libraries exists in their newest releases.

Their sources are read, not run, so no torch is needed. They lie in an environment of their own (.venv-hf, built
by ``make`` once); ``TPU_MIGRATE_HF_PYTHON`` names the Python of another one that has them.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
from pathlib import Path

import pytest

from tests.tpu_environment import find_hf_python
from tpu_migrate.python.template import parse_template
from tpu_migrate.rules import Rule, load_rules

LIBRARIES = ("transformers", "accelerate", "diffusers", "peft", "trl", "huggingface_hub")
VERSIONS = {"transformers": "5.24.0", "accelerate": "1.15.0", "diffusers": "0.42.1", "peft": "0.21.2"}
DOTTED = re.compile(rf"\b((?:{'|'.join(LIBRARIES)})(?:\.[A-Za-z_]\w*)+)")
RULES = load_rules().rules

pytestmark = pytest.mark.slow


class Sources:
    """Installed packages, as their sources define them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @functools.cache  # noqa: B019 - one object lives as long as the tests
    def module(self, name: str) -> ast.Module | None:
        stem = self.folder.joinpath(*name.split("."))
        for path in (stem / "__init__.py", stem.with_suffix(".py")):
            if path.is_file():
                return ast.parse(path.read_text("utf-8"))
        return None

    def find(self, name: str) -> ast.AST | None:
        """The node that defines a dotted name; None where nothing does."""
        parts = name.split(".")
        for count in range(len(parts), 0, -1):
            module = self.module(".".join(parts[:count]))
            if module is not None:
                return self._inside(module, ".".join(parts[:count]), parts[count:])
        return None

    def _inside(self, module: ast.Module, module_name: str, rest: list[str]) -> ast.AST | None:
        if not rest:
            return module
        found: ast.AST | None = _member(module, rest[0]) or self._imported(module, module_name, rest[0])
        for part in rest[1:]:
            if not isinstance(found, ast.ClassDef):
                return None
            found = self._attribute(found, part)
        return found

    def _attribute(self, cls: ast.ClassDef, name: str) -> ast.AST | None:
        """A class's own attribute; the automatic classes of transformers have theirs from one base."""
        own = _member(cls, name)
        bases = [ast.unparse(base) for base in cls.bases]
        if own is None and "_BaseAutoModelClass" in bases:
            base = self.find("transformers.models.auto.auto_factory._BaseAutoModelClass")
            return _member(base, name) if isinstance(base, ast.ClassDef) else None
        return own

    def _imported(self, module: ast.Module, module_name: str, name: str) -> ast.AST | None:
        """What a module imports under a name; lazy packages say that under TYPE_CHECKING, or in ``__all__``."""
        for node in ast.walk(module):
            if isinstance(node, ast.ImportFrom) and node.level:
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        package = module_name.split(".")[: len(module_name.split(".")) - node.level + 1]
                        return self.find(".".join([*package, *filter(None, [node.module]), alias.name]))
        if module_name == "transformers":
            for path in sorted((self.folder / "transformers" / "models").rglob("modeling_*.py")):
                text = path.read_text("utf-8")
                if f'"{name}"' in text and f"class {name}(" in text:
                    return _member(ast.parse(text), name)
        return None


def _member(holder: ast.Module | ast.ClassDef, name: str) -> ast.AST | None:
    for node in ast.walk(holder) if isinstance(holder, ast.Module) else holder.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
            return node
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return node
    return None


def takes(node: ast.AST, keyword: str) -> bool:
    """Whether a function, or a class's ``__init__``, has a parameter of that name."""
    if isinstance(node, ast.ClassDef):
        init = _member(node, "__init__")
        return takes(init, keyword) if init is not None else _member(node, keyword) is not None
    assert isinstance(node, ast.FunctionDef)
    arguments = node.args
    return keyword in {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}


def emitted(rule: Rule) -> set[str]:
    """Names of these libraries that a rule's templates write."""
    texts = [rule.replace, *(value for value in rule.options.values() if isinstance(value, str))]
    found: set[str] = set()
    for text in texts:
        if any(f"{library}." in text for library in LIBRARIES):
            names = parse_template(text, "tpu", frozenset(rule.imports)).names
            found.update(name for name in names if name.partition(".")[0] in LIBRARIES)
    return found


def keywords(rule: Rule) -> set[tuple[str, str]]:
    """(function, keyword) of the calls that a rule's template writes."""
    text = re.sub(r"\$(\w+)\??", r"capture_\1", rule.replace.replace("@", "at_"))
    if not any(f"{library}." in text for library in LIBRARIES):
        return set()
    return {
        (ast.unparse(node.func), keyword.arg)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func).partition(".")[0] in LIBRARIES
        for keyword in node.keywords
        if keyword.arg is not None
    }


@pytest.fixture(scope="module")
def sources() -> Sources:
    question = "import sysconfig; print(sysconfig.get_path('purelib'))"
    done = subprocess.run([find_hf_python(), "-c", question], capture_output=True, text=True, check=True)
    return Sources(Path(done.stdout.strip()))


def test_the_environment_is_the_one_that_is_meant(sources: Sources) -> None:
    found = {name: {path.name for path in sources.folder.glob(f"{name}-*.dist-info")} for name in VERSIONS}
    assert found == {name: {f"{name}-{version}.dist-info"} for name, version in VERSIONS.items()}


def test_a_name_that_does_not_exist_is_noticed(sources: Sources) -> None:
    assert sources.find("transformers.utils.is_torch_tpu_available") is not None
    assert sources.find("transformers.is_torch_tpu_available") is None
    assert sources.find("transformers.GemmaForCausalLM") is not None
    assert sources.find("transformers.GemmaForNothing") is None
    assert sources.find("diffusers.utils.nothing") is None


def test_the_rules_write_something_of_these_libraries() -> None:
    names = set().union(*map(emitted, RULES))
    assert {"transformers.utils.is_torch_tpu_available", "transformers.AutoModelForCausalLM"} <= {
        *names,
        *(name.removesuffix(".from_pretrained") for name in names),
    }


@pytest.mark.parametrize("rule", [rule for rule in RULES if emitted(rule)], ids=lambda rule: rule.code)
def test_every_name_that_a_rule_writes_exists(sources: Sources, rule: Rule) -> None:
    assert {name for name in emitted(rule) if sources.find(name) is None} == set()


@pytest.mark.parametrize("rule", [rule for rule in RULES if keywords(rule)], ids=lambda rule: rule.code)
def test_every_keyword_that_a_rule_writes_is_taken(sources: Sources, rule: Rule) -> None:
    for function, keyword in keywords(rule):
        if function.endswith("AutoModelForCausalLM.from_pretrained"):  # hands its keywords on
            function = "transformers.modeling_utils.PreTrainedModel.from_pretrained"
            body = ast.unparse(sources.find(function) or pytest.fail(f"there is no {function}"))
            assert f"'{keyword}'" in body or f"{keyword}:" in body, f"{function} has no {keyword}"
            continue
        node = sources.find(function)
        assert node is not None, f"there is no {function}"
        assert takes(node, keyword), f"{function} takes no {keyword}"


def test_every_name_in_advice_exists(sources: Sources) -> None:
    missing = {}
    for rule in RULES:
        named = set(DOTTED.findall(" ".join((rule.action, rule.review)))) | set(DOTTED.findall(rule.replace))
        for name in named:
            if sources.find(name) is None:
                missing[rule.code] = name
    assert missing == {}


def test_fields_that_rules_take_out_are_gone_and_the_others_are_there(sources: Sources) -> None:
    arguments = sources.find("transformers.TrainingArguments")
    assert isinstance(arguments, ast.ClassDef)
    for gone in ("tpu_num_cores", "tpu_metrics_debug"):
        assert not takes(arguments, gone)
    for there in ("optim", "debug", "bf16", "fsdp", "fsdp_config", "torch_compile", "torch_compile_backend"):
        assert takes(arguments, there)


def test_what_rules_say_about_the_libraries_is_so(sources: Sources) -> None:
    def text(name: str) -> str:
        node = sources.find(name)
        assert node is not None, name
        return ast.unparse(node)

    assert "'adamw_torch'" in text("transformers.training_args.OptimizerNames")
    assert "'activation_checkpointing'" in text("transformers.TrainingArguments")
    assert "tpu" not in text("accelerate.utils.dataclasses.DistributedType").lower()
    assert "tpu" not in text("accelerate.utils.dataclasses.DynamoBackend").lower().replace("tpu_", "")
    assert "ACCELERATE_TORCH_DEVICE" in text("accelerate.state")
    assert "torch_xla" in text("peft.import_utils.is_torch_tpu_available")
    assert "'tpu'" in text("transformers.utils.import_utils.is_torch_tpu_available")
    assert "torch_tpu" in text("diffusers.utils.import_utils")
