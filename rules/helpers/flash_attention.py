import torch
import torch.nn.functional as F


def flash_attention(q, k, v, causal=False, q_segment_ids=None, kv_segment_ids=None, sm_scale=1.0, *, ab=None):
    """Attention with the defaults of torch_xla's kernel: scores aren't scaled unless ``sm_scale`` says so.

    Tokens see only tokens of their own segment; ``ab`` is added to the scores before they are scaled.
    """
    mask = None
    if q_segment_ids is not None:
        mask = (q_segment_ids[:, :, None] == kv_segment_ids[:, None, :]).unsqueeze(1)
    if causal and (mask is not None or ab is not None):
        triangle = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).tril()
        mask = triangle if mask is None else mask & triangle
        causal = False
    if ab is not None:
        bias = (ab * sm_scale).to(q.dtype)
        mask = bias if mask is None else bias.masked_fill(~mask, float("-inf"))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, scale=sm_scale)
