import torch
import torch_xla.core.xla_model as xm
import torch_xla.debug.metrics as met
import torch_xla.distributed.xla_multiprocessing as xmp


def train(index, steps):
    device = xm.xla_device()
    model = torch.nn.Linear(16, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        x = torch.randn(32, 16).to(device)
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        xm.optimizer_step(optimizer)
        xm.mark_step()
    if xm.get_ordinal() == 0:
        print(loss.item(), met.counter_value("UncachedCompile"))


if __name__ == "__main__":
    xmp.spawn(train, args=(20,))
