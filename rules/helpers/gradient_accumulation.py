def gradient_accumulation(train_step, iterable_tensors, model, *carried_tensors):
    """Run ``train_step`` and backward on each slice of the tensors; gradients add up in ``model``.

    Returns the mean loss, followed by the carried tensors of the last step if there are any.
    """
    steps = iterable_tensors[0].size(0)
    total = 0.0
    for index in range(steps):
        result = train_step(*(tensor[index] for tensor in iterable_tensors), *carried_tensors)
        loss, *carried_tensors = result if carried_tensors else (result,)
        loss = loss / steps
        loss.backward()
        total = total + loss.detach()
    return (total, *carried_tensors) if carried_tensors else total
