"""HOW: the transforms that rules name. A rule without one is a template."""

from __future__ import annotations

from collections.abc import Callable

from tpu_migrate.python.site import Rewrite, Site
from tpu_migrate.python.transforms import (
    arguments,
    call,
    collective,
    compile,
    device,
    environment,
    fsdp,
    launch,
    loader,
    optimizer,
    precision,
    saving,
    sharding,
    statement,
    template,
    with_block,
)

Transform = Callable[[Site], Rewrite]

TRANSFORMS: dict[str, Transform] = {
    "autocast": precision.autocast,
    "clip-grad-norm": fsdp.clip_grad_norm,
    "collective": collective.collective,
    "compile-backend": device.compile_backend,
    "compile-decorator": with_block.compile_decorator,
    "compile-function": compile.compile_function,
    "convert-to-cpu": saving.convert_to_cpu,
    "device": device.device,
    "device-comparison": device.device_comparison,
    "device-kind": device.device_kind,
    "device-string": device.device_string,
    "drop-env": environment.drop_env,
    "drop-keyword": arguments.drop_keyword,
    "drop-statement": statement.drop_statement,
    "call-now": statement.call_now,
    "find-spec": device.find_spec,
    "fully-shard": fsdp.fully_shard,
    "get-rng-state": precision.get_rng_state,
    "launch": launch.launch,
    "mark-sharding": sharding.mark_sharding,
    "matmul-precision": precision.matmul_precision,
    "mesh": sharding.mesh,
    "module-flag": device.module_flag,
    "drop-patch": saving.drop_patch,
    "drop-string-argument": device.drop_string_argument,
    "model-wrapper": arguments.model_wrapper,
    "optimizer-step": optimizer.optimizer_step,
    "parallel-loader": loader.parallel_loader,
    "process-group": device.process_group,
    "reduce-gradients": collective.reduce_gradients,
    "rename-call": call.rename_call,
    "rendezvous": collective.rendezvous,
    "replace-string": device.replace_string,
    "save": saving.save,
    "seed": precision.seed,
    "send-to-device": saving.send_to_device,
    "set-device-type": device.set_device_type,
    "start-process-group": collective.start_process_group,
    "synchronize": statement.synchronize,
    "synchronize-or-drop": statement.synchronize_or_drop,
    "unwrap-argument": arguments.unwrap_argument,
    "unwrap-with": with_block.unwrap_with,
}


def apply(site: Site) -> Rewrite:
    """Make a rule's rewrite at a site.

    Raises:
        Refused: it can't be made here; the message says why.
        NameTaken: a name it needs means something else in the file.
    """
    rule = site.match.rule
    return TRANSFORMS[rule.transform](site) if rule.transform else template.fill(site)
