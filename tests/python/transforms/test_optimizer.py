"""``xm.optimizer_step``: the mean of the gradients over all workers, then the update; in this order."""

import pytest

from ..check import assert_rewritten, assert_unchanged, migrate

XM = "import torch_xla.core.xla_model as xm\n"
XMP = "import torch_xla.distributed.xla_multiprocessing as xmp\n"
MAIN = "if __name__ == '__main__':\n    xmp.spawn(worker)\n"


@pytest.mark.parametrize("kind", ["single-process", "spmd"])
@pytest.mark.parametrize(
    ("call", "step"),
    [
        ("xm.optimizer_step(o)", "o.step()"),
        ("xm.optimizer_step(o, barrier=True)", "o.step()"),
        ("xm.optimizer_step(self.o)", "self.o.step()"),
        ("xm.optimizer_step(os[0])", "os[0].step()"),
        ("xm.optimizer_step(make())", "make().step()"),
        ("xm.optimizer_step(a or b)", "(a or b).step()"),
        ("xm.optimizer_step(optimizer=o)", "o.step()"),
        ("xm.optimizer_step(o, optimizer_args={'closure': c})", "o.step(closure=c)"),
        ("xm.optimizer_step(o, optimizer_args=k)", "o.step(**k)"),
        ("xm.optimizer_step(o, optimizer_args={**k})", "o.step(**{**k})"),
        ("loss = xm.optimizer_step(o)", "loss = o.step()"),
    ],
)
def test_a_process_alone_only_steps(kind, call, step):
    assert_rewritten(f"{XM}loss.backward()\n{call}\n", f"loss.backward()\n{step}\n", kind=kind)


@pytest.mark.parametrize("kind", ["single-process", "spmd", "multi-process", "library"])
def test_groups_of_ranks_are_refused(kind):
    assert_unchanged(f"{XM}xm.optimizer_step(o, groups=[[0, 1]])\n", open=["TX301", "TX990"], kind=kind)
    assert_unchanged(f"{XM}xm.reduce_gradients(o, groups=[[0, 1]])\n", open=["TX302", "TX990"], kind=kind)


@pytest.mark.parametrize("kind", ["multi-process", "library"])
def test_several_processes_average_before_the_step(kind):
    new = migrate(
        f"{XM}def f():\n    loss.backward()\n    clip_(grads)\n    xm.optimizer_step(self.o)\n", kind=kind
    ).new.decode()
    assert new.endswith("    clip_(grads)\n    average_gradients(self.o)\n    self.o.step()\n")


def test_explicit_reduction_and_clipping_keep_their_order():
    new = migrate(
        f"{XM}def f():\n    loss.backward()\n    xm.reduce_gradients(o)\n    clip_(m)\n    o.step()\n",
        kind="multi-process",
    ).new.decode()
    assert new.endswith("    loss.backward()\n    average_gradients(o)\n    clip_(m)\n    o.step()\n")


WORKER = """\
import torch
{imports}
def worker(i):
    model = Net()
    optimizer = SGD(model.parameters(), lr=1)
    for x in loader:
        loss = model(x)
        loss.backward()
{between}        xm.optimizer_step(optimizer)
{behind}
{main}"""


def trained(between: str = "", behind: str = "") -> str:
    return migrate(WORKER.format(imports=XM + XMP, between=between, behind=behind, main=MAIN)).new.decode()


@pytest.mark.parametrize(
    "between", ["", "        log(x)\n", "        steps += 1\n", "        xm.mark_step()\n"]
)
def test_ddp_takes_over_where_all_is_in_view(between):
    new = trained(between)
    assert (
        "    model = Net()\n    model = DistributedDataParallel(model, broadcast_buffers=False)\n    optimizer = SGD"
        in new
    )
    assert "average_gradients" not in new
    assert "        optimizer.step()\n" in new


def test_ddp_keeps_the_keys_of_a_checkpoint():
    assert "    torch.save(model.module.state_dict(), 'f')\n" in trained(
        behind="    torch.save(model.state_dict(), 'f')\n"
    )


@pytest.mark.parametrize(
    ("between", "behind"),
    [
        ("        clip_grad_norm_(model.parameters(), 1.0)\n", ""),
        ("        for p in model.parameters():\n            p.grad.mul_(2)\n", ""),
        ("        norm(model)\n", ""),
        ("        scale(optimizer)\n", ""),
        ("", "    evaluate(model)\n"),
        ("", "    model.head.reset()\n"),
        ("", "    other = model\n"),
        ("", "    xm.optimizer_step(optimizer)\n"),
        ("        xm.reduce_gradients(optimizer)\n", ""),
    ],
)
def test_ddp_does_not_where_something_is_not(between, behind):
    new = trained(between, behind)
    assert "DistributedDataParallel" not in new
    assert "        average_gradients(optimizer)\n        optimizer.step()\n" in new


def test_ddp_does_not_when_the_step_is_not_taken_every_time():
    new = migrate(
        WORKER.format(imports=XM + XMP, between="        if i % 4 == 0:\n    ", behind="", main=MAIN)
    ).new.decode()
    assert "DistributedDataParallel" not in new
    assert "            average_gradients(optimizer)\n            optimizer.step()\n" in new


@pytest.mark.parametrize(
    ("between", "behind"),
    [
        ("        inspect(optimizer.param_groups[0]['params'][0].grad)\n", ""),
        ("        hook()\n        with torch.no_grad():\n            adjust(loader, model)\n", ""),
    ],
)
def test_ddp_does_not_where_gradients_are_read_in_between(between, behind):
    assert "DistributedDataParallel" not in trained(between, behind)


def test_two_optimizers_average_each_before_its_step():
    new = migrate(
        f"{XM}def f():\n    d.backward()\n    xm.optimizer_step(od)\n    g.backward()\n    xm.optimizer_step(og)\n",
        kind="multi-process",
    ).new.decode()
    assert new.endswith(
        "    d.backward()\n    average_gradients(od)\n    od.step()\n"
        "    g.backward()\n    average_gradients(og)\n    og.step()\n"
    )


def test_ddp_does_not_where_the_model_is_not_called():
    program = WORKER.replace("loss = model(x)", "loss = sum(p.sum() for p in model.parameters())")
    new = migrate(program.format(imports=XM + XMP, between="", behind="", main=MAIN)).new.decode()
    assert "average_gradients(optimizer)" in new
