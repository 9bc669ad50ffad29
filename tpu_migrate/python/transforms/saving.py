"""Checkpoints and copies between host and device."""

from __future__ import annotations

from tpu_migrate.findings import Edit, Part
from tpu_migrate.python.pattern import is_literal
from tpu_migrate.python.site import Refused, Rewrite, Site
from tpu_migrate.python.transforms.template import helper_call


def save(site: Site) -> Rewrite:
    """Save with the helper; the arguments stay as they are, a ``path=`` gets its new name.

    xm.save(state, path, global_master=True)  ->  save(state, path, global_master=True)
    """
    assert site.call is not None
    sync = site.captures.single.get("sync")
    if sync is not None and sync.given:
        raise Refused(
            "it has a sync argument; call torch.distributed.barrier() behind it where that was True"
        )
    edits: list[Edit] = list(helper_call(site, "save").edits)  # type: ignore[arg-type]
    for argument in site.call.args:
        if argument.keyword is not None and argument.keyword.value == "path":
            edits.append(Edit(site.tree.span(argument.keyword), ("file_or_path",)))
    return Rewrite(tuple(edits))


def convert_to_cpu(site: Site) -> Rewrite:
    """Copy nested data to the CPU with the helper.

    xm._maybe_convert_to_cpu(data)                  ->  to_cpu(data)
    xm._maybe_convert_to_cpu(data, convert=master)  ->  (to_cpu(data) if master else data)
    """
    convert = site.capture("convert").node
    helper = site.use_helper("to_cpu")
    if convert is None or is_literal(convert, True):
        return site.replace(site.template(f"{helper}($data)"))
    return site.replace(site.template(f"{helper}($data) if $convert else $data"), loose=True)


def send_to_device(site: Site) -> Rewrite:
    """Move nested data to the device with the helper.

    xm.send_cpu_data_to_device(batch, device)  ->  to_device(batch, device)
    """
    data = "datas" if "datas" in site.captures.single else "data"
    parts: tuple[Part, ...] = site.template(f"{site.use_helper('to_device')}(${data}, $device)")
    return site.replace(parts)


def drop_patch(site: Site) -> Rewrite:
    """Delete a call that patched a module, or leave the module in its place.

    model = apply_xla_patch_to_nn_linear(model)  ->  model = model
    """
    name = next(iter(site.captures.single))
    if site.is_whole_statement:
        return site.delete_statement()
    return site.replace(site.template(f"${name}"))
