"""Chat model and embeddings of your own: any of LangChain's classes."""

from __future__ import annotations

import hashlib
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from graph.agent import open_agent


class TownModel(GenericFakeChatModel):
    """In place of your model. `open_agent` refuses a model without `bind_tools`."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> BaseChatModel:
        """This model calls no tools."""
        return self


class TownEmbeddings(Embeddings):
    """In place of your embeddings. A data folder keeps the embedder that made it."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector a text, all of one length."""
        return [[byte / 255 for byte in hashlib.sha256(text.encode()).digest()] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """The vector of one question."""
        return self.embed_documents([text])[0]


model = TownModel(messages=iter([AIMessage("The bakery opens at seven.")]))
with open_agent(".circadian/town", model=model, embedder=TownEmbeddings()) as agent:
    print(agent.invoke({"messages": "When does the bakery open?"})["reply"])
